package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// loaded reads an image back as docker does.
func loaded(t *testing.T, r *release) v1.Image {
	t.Helper()
	img, err := tarball.ImageFromPath(filepath.Join(r.out, fmt.Sprintf("samya_%s_%s.docker.tar", r.source.version, linux)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestImage(t *testing.T) {
	r := built(t)
	img := loaded(t, r)
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != "/usr/bin/samya" || config.OS != "linux" || config.Architecture != runtime.GOARCH ||
		!config.Created.Equal(r.source.time) || c.Labels["org.opencontainers.image.version"] != r.source.version {
		t.Errorf("%+v", config)
	}
	// All but the data belongs to root, and nobody else may write it.
	files := mutate.Extract(img)
	defer files.Close()
	var names []string
	for root := tar.NewReader(files); ; {
		h, err := root.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if data := h.Name == "var/lib/samya"; data != (h.Uid == nonRoot) || h.Mode&0o022 != 0 || h.Mode&0o7000 != 0 {
			t.Errorf("%s is of %d and has mode %o", h.Name, h.Uid, h.Mode)
		}
	}
	if want := "etc etc/group etc/passwd usr usr/bin usr/bin/samya var var/lib var/lib/samya"; strings.Join(names, " ") != want {
		t.Errorf("holds %q, want %q", names, want)
	}
}

// TestLayout: the archive of the OCI holds the same image, for each platform.
func TestLayout(t *testing.T) {
	r := built(t)
	dir := t.TempDir()
	if _, err := output(t.Context(), dir, nil, "tar", "-xf", filepath.Join(r.out, "samya_"+r.source.version+".oci.tar")); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != r.source.version {
		t.Fatalf("%+v, %v", top, err)
	}
	images, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := images.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("%+v, %v", manifest, err)
	}
	img, err := images.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	want, errWant := loaded(t, r).ConfigName()
	got, err := img.ConfigName()
	if err := errors.Join(err, errWant); err != nil || got != want {
		t.Errorf("%v, and docker's is %v (%v)", got, want, err)
	}
}

// container runs programs in the root of an image, as the image's user. The root is
// read-only; the data directory and the processes are its own.
type container struct {
	t          *testing.T
	root, data string
}

// enter is the start of a container: mounts of its own that end with it. Its first
// argument is the root, its second the data.
const enter = `set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --bind "$2" "$1/var/lib/samya"
root=$1
shift 2
exec chroot --userspec=65532:65532 --groups= "$root" /usr/bin/samya "$@"`

func newContainer(t *testing.T, img v1.Image) *container {
	t.Helper()
	c := &container{t: t, root: filepath.Join(t.TempDir(), "root"), data: filepath.Join(t.TempDir(), "data")}
	files := mutate.Extract(img)
	defer files.Close()
	archive := filepath.Join(t.TempDir(), "root.tar")
	b, err := io.ReadAll(files)
	if err := errors.Join(err, os.Mkdir(c.root, 0o755), os.WriteFile(archive, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := output(t.Context(), c.root, nil, "tar", "--same-owner", "-xpf", archive); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(c.data, 0o700), os.Chown(c.data, nonRoot, nonRoot)); err != nil {
		t.Fatal(err)
	}
	// Its user has to get there.
	for dir := filepath.Dir(c.root); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode()&0o001 == 0 {
			if err := os.Chmod(dir, info.Mode()|0o011); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

func (c *container) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "unshare", append([]string{
		"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, "sh", c.root, c.data,
	}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start runs a process until the test ends, which then must have ended well.
func (c *container) start(args ...string) {
	c.t.Helper()
	cmd := c.command(context.Background(), append(args, "--exit-with-stdin")...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	c.t.Cleanup(func() {
		_ = stdin.Close() // that it ends shows it
		select {
		case err := <-ended:
			if err != nil {
				c.t.Errorf("samya %s: %v\n%s", args[0], err, log.String())
			}
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill() // it is late as it is
			c.t.Errorf("samya %s does not end", args[0])
		}
	})
}

// run runs a command of the image.
func (c *container) run(args ...string) (string, error) {
	out, err := c.command(c.t.Context(), args...).CombinedOutput()
	return string(out), err
}

// ready waits until a process says that it is.
func ready(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nothing is ready at %s", addr)
		}
	}
}

// freeAddrs returns addresses of this machine that nobody listens on.
func freeAddrs(t *testing.T, n int) []string {
	t.Helper()
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all
}

// TestImageServes: a site and an app manager serve from the image's root, which
// is read-only, as its user, with settings from a file.
func TestImageServes(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("wants Linux, and to be root: it mounts and changes the root")
		}
		t.Skip("wants Linux, and to be root: it mounts and changes the root")
	}
	r := built(t)
	c := newContainer(t, loaded(t, r))
	a := freeAddrs(t, 6)
	settings := fmt.Sprintf(`
site: {name: us, data: /var/lib/samya/us, members: [us], grpc: %q, http: %q, gossip: %q, preset: local}
appmgr: {name: am, region: us, http: %q, grpc: %q, gossip: %q, join: [%[3]q], preset: local}
client: {addr: %[4]q}
`, a[0], a[1], a[2], a[3], a[4], a[5])
	file := filepath.Join(c.data, "samya.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	const config = "/var/lib/samya/samya.yaml"
	c.start("site", "--config", config)
	c.start("appmgr", "--config", config)
	ready(t, a[1])
	ready(t, a[3])
	for _, line := range []string{"config check " + config, "entity create acme/vm --limit 10 --config " + config, "acquire acme/vm 3 --config " + config} {
		if out, err := c.run(strings.Fields(line)...); err != nil {
			t.Errorf("samya %s: %v: %s", line, err, out)
		}
	}
	out, err := c.run("entity", "get", "acme/vm", "--json", "--config", config)
	if err != nil || !strings.Contains(out, `"acquired": 3`) {
		t.Errorf("%v: %s", err, out)
	}
	// The site's files belong to its user.
	info, err := os.Stat(filepath.Join(c.data, "us"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != nonRoot || owner.Gid != nonRoot {
		t.Errorf("the data is of %d:%d", owner.Uid, owner.Gid)
	}
	// Nothing else can be written, and not for want of permission alone.
	if out, err := c.run("man", "/man"); err == nil || !strings.Contains(out, "read-only file system") {
		t.Errorf("the root can be written: %v: %s", err, out)
	}
}
