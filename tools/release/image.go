package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonRoot is the id of the user and the group that samya runs as in an image.
const nonRoot = 65532

// dataDir is the directory of a site's data in an image: a volume, and the only
// directory that the site writes to.
const dataDir = "/var/lib/samya"

// imageFiles returns the files of an image. There is no shell and no library: samya is a
// static binary.
func imageFiles(binary string) []file {
	return withDirectories([]file{
		{name: "etc/passwd", mode: 0o644, text: fmt.Sprintf("root:x:0:0::/:/sbin/nologin\nsamya:x:%d:%[1]d::%s:/sbin/nologin\n", nonRoot, dataDir)},
		{name: "etc/group", mode: 0o644, text: fmt.Sprintf("root:x:0:\nsamya:x:%d:\n", nonRoot)},
		{name: "usr/bin/samya", mode: 0o755, path: binary},
		{name: dataDir[1:] + "/", mode: 0o700, uid: nonRoot},
	})
}

// image makes the image of a platform.
func image(src source, p platform, binary string) (v1.Image, error) {
	var root bytes.Buffer
	if err := writeTar(&root, imageFiles(binary), src.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(root.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: src.time}, CreatedBy: "tools/release"},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, imageConfig(config, src, p))
}

// imageConfig returns the configuration with which the image runs.
func imageConfig(config *v1.ConfigFile, src source, p platform) *v1.ConfigFile {
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: src.time}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%[1]d", nonRoot),
		Entrypoint: []string{"/usr/bin/samya"},
		Cmd:        []string{"--help"},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: dataDir,
		Volumes:    map[string]struct{}{dataDir: {}},
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "samya",
			"org.opencontainers.image.version":  src.version,
			"org.opencontainers.image.revision": src.revision,
			"org.opencontainers.image.source":   "https://github.com/samya-db/samya",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return config
}

// writeImages writes the images of the Linux binaries: an OCI archive of all images, and
// an archive for docker of each image.
func (r *release) writeImages(binaries map[platform]string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	byName := func(a, b platform) int { return cmp.Compare(a.String(), b.String()) }
	for _, p := range slices.SortedFunc(maps.Keys(binaries), byName) {
		if p.os != "linux" {
			continue
		}
		img, err := image(r.source, p, binaries[p])
		if err != nil {
			return fmt.Errorf("image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		if err := r.writeDocker(p, img); err != nil {
			return fmt.Errorf("image for %s: %w", p, err)
		}
	}
	if err := r.writeLayout(index); err != nil {
		return fmt.Errorf("images: %w", err)
	}
	return nil
}

// writeDocker writes an image for `docker load` and `podman load`.
func (r *release) writeDocker(p platform, img v1.Image) error {
	tag, err := name.NewTag("samya:" + r.source.version)
	if err != nil {
		return err
	}
	file := fmt.Sprintf("samya_%s_%s.docker.tar", r.source.version, p)
	if err := create(filepath.Join(r.out, file), func(w io.Writer) error { return tarball.Write(tag, img, w) }); err != nil {
		return err
	}
	r.done(file)
	return nil
}

// writeLayout writes the images of all platforms as an archive for the tools of
// registries: `skopeo copy oci-archive:…`.
func (r *release) writeLayout(index v1.ImageIndex) error {
	dir, err := os.MkdirTemp("", "samya-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // in the directory of temporary files
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	ref := map[string]string{"org.opencontainers.image.ref.name": r.source.version}
	if err := l.AppendIndex(index, layout.WithAnnotations(ref)); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, file{name: filepath.ToSlash(rel), path: path, mode: 0o644})
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("samya_%s.oci.tar", r.source.version)
	if err := create(filepath.Join(r.out, name), func(w io.Writer) error {
		return writeTar(w, withDirectories(files), r.source.time)
	}); err != nil {
		return err
	}
	r.done(name)
	return nil
}
