package kvlab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/samya-db/samya/lab/ycsb"
)

// Source is a sequence of a client's operations. Next returns io.EOF after the
// last.
type Source interface {
	Next() (ycsb.Op, error)
}

// Endless returns the source of a generator.
func Endless(g *ycsb.Generator) Source { return endless{g} }

type endless struct{ g *ycsb.Generator }

func (e endless) Next() (ycsb.Op, error) { return e.g.Next(), nil }

// Prepared returns a source of operations made before: making them costs nothing
// during the run.
func Prepared(ops []ycsb.Op) Source { return &prepared{ops: ops} }

type prepared struct {
	ops []ycsb.Op
	at  int
}

func (p *prepared) Next() (ycsb.Op, error) {
	if p.at == len(p.ops) {
		return ycsb.Op{}, io.EOF
	}
	p.at++
	return p.ops[p.at-1], nil
}

// Drain returns a Prepared source with all operations of s.
func Drain(s Source) (Source, error) {
	var ops []ycsb.Op
	for {
		op, err := s.Next()
		if errors.Is(err, io.EOF) {
			return Prepared(ops), nil
		}
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
}

// Make makes n operations for each client of a workload.
func Make(w *ycsb.Workload, clients, n int) [][]ycsb.Op {
	all := make([][]ycsb.Op, clients)
	for c := range all {
		g := w.Client(c)
		all[c] = make([]ycsb.Op, n)
		for i := range all[c] {
			all[c][i] = g.Next()
		}
	}
	return all
}

// Limited ends a source after n operations.
func Limited(s Source, n int64) Source { return &limited{s, n} }

type limited struct {
	s    Source
	left int64
}

func (l *limited) Next() (ycsb.Op, error) {
	if l.left == 0 {
		return ycsb.Op{}, io.EOF
	}
	l.left--
	return l.s.Next()
}

// LoadFile is the file in a workload's folder that a single client runs before the
// clients' files. It is not measured.
const LoadFile = "load.csv"

// Files lists the files of operations in a folder, a file for each client, in the
// order of their names. load is the name of LoadFile, "" for none.
func Files(dir string) (clients []string, load string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, "", fmt.Errorf("list workload files: %w", err)
	}
	for _, e := range entries {
		switch name := filepath.Join(dir, e.Name()); {
		case !e.Type().IsRegular() || e.Name()[0] == '.':
		case e.Name() == LoadFile:
			load = name
		default:
			clients = append(clients, name)
		}
	}
	if len(clients) == 0 {
		return nil, "", fmt.Errorf("%s: no file of a client", dir)
	}
	slices.Sort(clients)
	return clients, load, nil
}

// FileSource reads files in turn, line by line. The caller closes it.
type FileSource struct {
	names []string
	file  *os.File
	r     *ycsb.Reader
}

// Open returns the operations of files. It opens each file at its first read.
func Open(names ...string) *FileSource { return &FileSource{names: names} }

// Next returns the next operation. A bad line fails with a *ycsb.FormatError.
func (s *FileSource) Next() (ycsb.Op, error) {
	for {
		if s.r == nil {
			if len(s.names) == 0 {
				return ycsb.Op{}, io.EOF
			}
			f, err := os.Open(s.names[0])
			if err != nil {
				return ycsb.Op{}, fmt.Errorf("read a workload: %w", err)
			}
			s.file, s.r, s.names = f, ycsb.NewReader(f, s.names[0]), s.names[1:]
		}
		op, err := s.r.Next()
		if !errors.Is(err, io.EOF) {
			return op, err
		}
		if err := s.Close(); err != nil {
			return ycsb.Op{}, err
		}
	}
}

// Close closes the open file.
func (s *FileSource) Close() error {
	f := s.file
	s.file, s.r = nil, nil
	if f == nil {
		return nil
	}
	return f.Close()
}

// Keys returns a source that writes each key of another source once.
func Keys(s Source) Source { return &keys{s, map[string]struct{}{}} }

type keys struct {
	s    Source
	seen map[string]struct{}
}

func (k *keys) Next() (ycsb.Op, error) {
	for {
		op, err := k.s.Next()
		if err != nil {
			return op, err
		}
		if _, ok := k.seen[op.Key]; !ok {
			k.seen[op.Key] = struct{}{}
			return ycsb.Op{Kind: ycsb.Write, Key: op.Key}, nil
		}
	}
}
