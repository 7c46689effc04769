// Package bookcopy copies the books of a whole cluster, over the public API: to a file of
// JSON lines for audits, and from such a file into a new cluster. It refuses to import a
// file that is not whole, that has entities without a consistent read, or into a cluster
// in which the entities are other ones. It copies no requests, no leases and no demand:
// tokens of leases are copied as tokens that are out.
//
// # Format
//
// The first line is a Header, the last an End; an Entry for each entity stands between,
// in the order of the names. The End has the SHA-256 of all lines before and of its own
// line with an empty checksum.
//
// Every entry is exact and a consistent cut of the entity, or says that it is not. The
// entries are of different moments, as a cluster goes on serving.
package bookcopy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/rates"
)

// Version is the version of the format.
const Version = 1

// maxLine bounds a line of a file, in bytes.
const maxLine = 1 << 20

// ErrFile: a file is not as it was written. The error that wraps it says where.
var ErrFile = errors.New("the file of books is damaged or not complete")

// Header is the first line of a file.
type Header struct {
	// Books is the version of the format.
	Books int `json:"samya_books"`
	// Cluster is the name of the cluster, and Sites are its members.
	Cluster string   `json:"cluster"`
	Sites   []string `json:"sites"`
	// Time is when the export was begun, by the clock of its machine.
	Time time.Time `json:"time"`
	// Build is the version of samya that wrote the file.
	Build string `json:"build"`
}

// Entry are the books of an entity.
type Entry struct {
	// Status has limit, version, parent and the sites' shares. Consistent tells whether
	// the read is a consistent cut.
	httpapi.Status
	// Leases is the number of the leases of the entity that were found, and Leased are
	// the tokens that they hold. Leases are listed at another moment.
	Leases int   `json:"leases"`
	Leased int64 `json:"leased"`
}

// End is the last line of a file.
type End struct {
	// Entities is the number of entries.
	Entities int `json:"entities"`
	// Inconsistent is the number of entries without a consistent read.
	Inconsistent int `json:"inconsistent"`
	// LeasesMissing are sites that did not tell of their leases.
	LeasesMissing []string `json:"leases_missing"`
	// SHA256 is the checksum in hexadecimal.
	SHA256 string `json:"sha256"`
}

// summed returns the checksum of a file, from the checksum over all lines before the end.
func (e End) summed(before hash.Hash) (string, error) {
	e.SHA256 = ""
	b, err := json.Marshal(&e)
	if err != nil {
		return "", err
	}
	before.Write(append(b, '\n'))
	return hex.EncodeToString(before.Sum(nil)), nil
}

// writer writes a file.
type writer struct {
	to  *bufio.Writer
	sum hash.Hash
	end End
}

func newWriter(to io.Writer, h *Header) (*writer, error) {
	w := &writer{to: bufio.NewWriter(to), sum: sha256.New()}
	return w, w.line(h)
}

func (w *writer) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	w.sum.Write(b)
	_, err = w.to.Write(b)
	return err
}

func (w *writer) entry(e *Entry) error {
	w.end.Entities++
	if !e.Consistent {
		w.end.Inconsistent++
	}
	return w.line(e)
}

// close writes the end.
func (w *writer) close() (End, error) {
	var err error
	if w.end.SHA256, err = w.end.summed(w.sum); err != nil {
		return End{}, err
	}
	if err := w.line(&w.end); err != nil {
		return End{}, err
	}
	return w.end, w.to.Flush()
}

// Books is a whole file.
type Books struct {
	Header  Header
	Entries []Entry
	End     End
}

// Read reads a file to its end, and checks that it is whole and that its entries can be
// the books of a cluster. Its error is ErrFile, or of the reading itself.
func Read(from io.Reader) (*Books, error) {
	r := &reader{from: bufio.NewReaderSize(from, 64<<10), sum: sha256.New()}
	b := &Books{}
	if err := r.line(&b.Header); err != nil {
		return nil, err
	}
	if b.Header.Books != Version {
		return nil, r.bad("it has version %d, known is %d", b.Header.Books, Version)
	}
	last := ""
	for {
		var line struct {
			Entry
			End *string `json:"sha256"`
		}
		raw, err := r.next()
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, r.bad("%w", err)
		}
		if line.End != nil {
			if err := json.Unmarshal(raw, &b.End); err != nil {
				return nil, r.bad("%w", err)
			}
			return b, r.ended(b, raw)
		}
		r.sum.Write(raw)
		if err := line.check(last); err != nil {
			return nil, r.bad("%w", err)
		}
		last = line.Name
		b.Entries = append(b.Entries, line.Entry)
	}
}

// check returns an error for an entry that no export writes; last is the name before it.
func (e *Entry) check(last string) error {
	terms, rate := rates.Parse(e.Kind, e.Per, e.TimeZone, e.Durable)
	if e.Keys && rate == nil {
		_, rate = terms.OfKeys(e.Durable)
	}
	switch err := errors.Join(name.Entity("name", e.Name), name.Limit("limit", e.Limit), name.Parent("parent", e.Parent), rate); {
	case err != nil:
		return err
	case e.Name <= last:
		return fmt.Errorf("entity %q stands behind %q", e.Name, last)
	case e.Acquired > name.MaxTokens:
		return fmt.Errorf("entity %q has %d tokens out, at most %d are possible", e.Name, e.Acquired, name.MaxTokens)
	}
	return nil
}

type reader struct {
	from *bufio.Reader
	sum  hash.Hash
	n    int
}

func (r *reader) bad(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %w", ErrFile, r.n, fmt.Errorf(format, args...))
}

// next reads a line, which must have an end.
func (r *reader) next() ([]byte, error) {
	r.n++
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, r.bad("it has more than %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil, r.bad("the end is missing")
		case err != nil:
			return nil, fmt.Errorf("reading line %d: %w", r.n, err)
		}
		return line, nil
	}
}

func (r *reader) line(into any) error {
	raw, err := r.next()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return r.bad("%w", err)
	}
	r.sum.Write(raw)
	return nil
}

// ended checks the end; line is its line.
func (r *reader) ended(b *Books, line []byte) error {
	// The checksum is not over these bytes themselves. They must be as an export writes
	// them.
	again, err := json.Marshal(&b.End)
	if err != nil || !bytes.Equal(append(again, '\n'), line) {
		return r.bad("it is not as it was written")
	}
	inconsistent := 0
	for i := range b.Entries {
		if !b.Entries[i].Consistent {
			inconsistent++
		}
	}
	sum, err := b.End.summed(r.sum)
	switch {
	case err != nil:
		return err
	case sum != b.End.SHA256:
		return r.bad("the checksum is wrong")
	case b.End.Entities != len(b.Entries) || b.End.Inconsistent != inconsistent:
		return r.bad("it tells of %d entities, %d of them inconsistent; there are %d and %d",
			b.End.Entities, b.End.Inconsistent, len(b.Entries), inconsistent)
	}
	if _, err := r.from.ReadByte(); !errors.Is(err, io.EOF) {
		return r.bad("something follows the end")
	}
	return b.tree()
}

// tree returns an error unless every parent is there, and no entity stands above itself.
func (b *Books) tree() error {
	place := b.places()
	depth := make([]int, len(b.Entries))
	for i := range b.Entries {
		var path []int
		for at := i; depth[at] == 0; {
			if slices.Contains(path, at) {
				return fmt.Errorf("%w: entity %q stands above itself", ErrFile, b.Entries[at].Name)
			}
			path = append(path, at)
			parent := b.Entries[at].Parent
			if parent == "" {
				depth[at] = 1
				break
			}
			above, found := place[parent]
			if !found {
				return fmt.Errorf("%w: the parent %q of entity %q is missing", ErrFile, parent, b.Entries[at].Name)
			}
			at = above
			if len(path) > maxDepth {
				return fmt.Errorf("%w: entities stand more than %d deep", ErrFile, maxDepth)
			}
		}
		for _, at := range slices.Backward(path) {
			if depth[at] == 0 {
				depth[at] = depth[place[b.Entries[at].Parent]] + 1
			}
		}
	}
	return nil
}

// maxDepth bounds how deep entities stand; a cluster allows fewer.
const maxDepth = 1024

// places returns the places of the entries by name.
func (b *Books) places() map[string]int {
	place := make(map[string]int, len(b.Entries))
	for i := range b.Entries {
		place[b.Entries[i].Name] = i
	}
	return place
}
