package ycsb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/samya-db/samya/kvpart"
)

// FormatError says that a line of a file is malformed.
type FormatError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *FormatError) Unwrap() error { return e.Err }

// longestLine is the length of a line: a key, its kind, a limit and separators.
const longestLine = kvpart.MaxKey + 32

// Append appends an operation as lines of a file: `0,key` reads, `1,key` writes,
// `2,key,limit` scans. A key with a comma, a line break or white space at an end
// has no form.
func Append(dst []byte, op Op) ([]byte, error) {
	if err := checkKey(op.Key); err != nil {
		return dst, err
	}
	line := func(kind byte) {
		dst = append(dst, kind, ',')
		dst = append(dst, op.Key...)
	}
	switch op.Kind {
	case Read:
		line('0')
	case Write:
		line('1')
	case Scan:
		if op.Limit < 1 || op.Limit > kvpart.MaxScan {
			return dst, errLimit
		}
		line('2')
		dst = strconv.AppendInt(append(dst, ','), int64(op.Limit), 10)
	case Modify:
		line('0')
		dst = append(dst, '\n')
		line('1')
	default:
		return dst, fmt.Errorf("no form for %v", op.Kind)
	}
	return append(dst, '\n'), nil
}

var (
	errKind  = errors.New("the line does not begin with 0, for a read, 1, a write, or 2, a scan, and a comma")
	errLimit = fmt.Errorf("a scan's limit must be within 1 and %d", kvpart.MaxScan)
	errLong  = fmt.Errorf("the line is longer than %d bytes", longestLine)
)

// checkKey checks that a file can hold a key.
func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("no key")
	case len(key) > kvpart.MaxKey:
		return fmt.Errorf("the key is of %d bytes, above %d", len(key), kvpart.MaxKey)
	case strings.ContainsAny(key, ",\r\n"):
		return errors.New("the key has a comma or a line break")
	case strings.TrimSpace(key) != key:
		return errors.New("the key begins or ends with white space")
	}
	return nil
}

// Reader reads a file of Repart-KV line by line.
type Reader struct {
	r    *bufio.Reader
	name string
	line int
	// interned are the keys seen before, so that repeated keys take no memory.
	interned map[string]string
}

// mostInterned bounds the keys that a Reader remembers.
const mostInterned = 1 << 18

// NewReader reads r, called name in errors.
func NewReader(r io.Reader, name string) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), name: name, interned: map[string]string{}}
}

// Next returns the next operation, io.EOF after the last. It skips empty lines. A
// malformed line fails with a *FormatError.
func (r *Reader) Next() (Op, error) {
	for {
		line, err := r.r.ReadSlice('\n')
		r.line++
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return Op{}, fmt.Errorf("read %s: %w", r.name, err)
		}
		if len(line) > longestLine {
			return Op{}, r.fail(errLong)
		}
		text := bytes.TrimSpace(line)
		switch {
		case len(text) > 0:
			op, err := r.parse(text)
			if err != nil {
				return Op{}, r.fail(err)
			}
			return op, nil
		case err != nil:
			return Op{}, io.EOF
		}
	}
}

func (r *Reader) fail(err error) error { return &FormatError{File: r.name, Line: r.line, Err: err} }

// parse reads a line that is not empty.
func (r *Reader) parse(text []byte) (Op, error) {
	if len(text) < 2 || text[1] != ',' || text[0] < '0' || text[0] > '2' {
		return Op{}, errKind
	}
	op := Op{Kind: Kind(text[0] - '0')}
	key := text[2:]
	if op.Kind == Scan {
		var limit []byte
		var found bool
		if key, limit, found = bytes.Cut(key, []byte(",")); !found {
			return Op{}, errors.New("a scan without a limit: 2,key,limit")
		}
		n, err := strconv.ParseUint(string(limit), 10, 32)
		if err != nil || n < 1 || n > kvpart.MaxScan {
			return Op{}, errLimit
		}
		op.Limit = int(n)
	}
	name, ok := r.interned[string(key)]
	if !ok {
		name = string(key)
		if err := checkKey(name); err != nil {
			return Op{}, err
		}
		if len(r.interned) < mostInterned {
			r.interned[name] = name
		}
	}
	op.Key = name
	return op, nil
}
