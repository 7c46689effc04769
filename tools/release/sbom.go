package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom lists the modules of a binary, in the form of CycloneDX. It reads the list out of
// the binary itself, so that only linked modules appear.
func (r *release) sbom(p platform, binary string) error {
	bom, err := billOf(r.source, binary)
	if err != nil {
		return fmt.Errorf("list what is in it: %w", err)
	}
	name := fmt.Sprintf("samya_%s_%s.cdx.json", r.source.version, p)
	err = create(filepath.Join(r.out, name), func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	})
	if err == nil {
		r.done(name)
	}
	return err
}

func billOf(src source, binary string) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(binary)
	if err != nil {
		return nil, err
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuidOf(sum)
	self := component(info.Main.Path, src.version, cdx.ComponentTypeApplication)
	self.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	self.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	bom.Metadata = &cdx.Metadata{Timestamp: src.time.Format(time.RFC3339), Component: &self}
	std := component("std", info.GoVersion, cdx.ComponentTypeLibrary)
	components := []cdx.Component{std}
	for _, m := range info.Deps {
		c, err := moduleComponent(m)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
	return bom, nil
}

// moduleComponent describes a module, with its sum in go.sum.
func moduleComponent(m *debug.Module) (cdx.Component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component(m.Path, m.Version, cdx.ComponentTypeLibrary)
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != 32 {
		return c, fmt.Errorf("%s %s has the sum %q", m.Path, m.Version, m.Sum)
	}
	c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	return c, nil
}

func component(name, version string, of cdx.ComponentType) cdx.Component {
	purl := "pkg:golang/" + name + "@" + version
	return cdx.Component{BOMRef: purl, Type: of, Name: name, Version: version, PackageURL: purl}
}

// uuidOf makes a UUID of version 8, the version with free content, from a checksum.
func uuidOf(sum []byte) string {
	b := append([]byte(nil), sum[:16]...)
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
