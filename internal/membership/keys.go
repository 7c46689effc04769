package membership

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/samya-db/samya/internal/reload"
)

const (
	// keyInterval is the time between two looks at a file of keys.
	keyInterval = 10 * time.Second
	// maxKeys bounds the keys of a file, and maxKeyFile its size in bytes.
	maxKeys, maxKeyFile = 16, 4 << 10
)

// ReadKeys reads a file of keys, each on a line, in base64, of 16, 24 or 32 bytes. It
// skips empty lines and lines that begin with #.
func ReadKeys(path string) ([][]byte, error) {
	b, err := reload.Read(path, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("gossip keys: %w", err)
	}
	keys, err := parseKeys(b)
	if err != nil {
		return nil, fmt.Errorf("gossip keys: %s: %w", path, err)
	}
	return keys, nil
}

func parseKeys(b []byte) ([][]byte, error) {
	var keys [][]byte
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		// No error tells any part of a possible key.
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: no base64", n)
		}
		switch len(key) {
		case 16, 24, 32:
		default:
			return nil, fmt.Errorf("line %d: a key of %d bytes, must be 16, 24 or 32", n, len(key))
		}
		if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			keys = append(keys, key)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("no key; must hold keys in base64, one a line")
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("%d keys, at most %d", len(keys), maxKeys)
	}
	return keys, nil
}

// followKeys takes up changes of the file of keys until ctx ends.
func (m *Membership) followKeys(ctx context.Context) { reload.Every(ctx, keyInterval, m.lookAtKeys) }

// lookAtKeys takes up the file of keys if it has changed. A bad file is logged once, and
// the present keys stay.
func (m *Membership) lookAtKeys() {
	m.keyMu.Lock()
	defer m.keyMu.Unlock()
	keys, err := ReadKeys(m.keyFile)
	if err == nil {
		err = exchange(m.keyring, keys)
	}
	if m.keyProblem.Fresh(err) {
		m.log.Error("the keys of gossip were not read again; those there are stay", slog.Any("error", err))
	}
}

// exchange replaces the keys of a ring by keys: the first encrypts, all are accepted.
func exchange(ring *memberlist.Keyring, keys [][]byte) error {
	for _, k := range keys {
		if err := ring.AddKey(k); err != nil {
			return err
		}
	}
	if err := ring.UseKey(keys[0]); err != nil {
		return err
	}
	for _, old := range slices.Clone(ring.GetKeys()) {
		if slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, old) }) {
			continue
		}
		if err := ring.RemoveKey(old); err != nil {
			return err
		}
	}
	return nil
}
