package metis

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/samya-db/samya/kvpart/cut"
)

// ReadParts reads the parts of so many vertices, a line each, as gpmetis writes them; -1
// stands for a vertex in no part. A file not in this format fails with the line.
func ReadParts(r io.Reader, vertices int) ([]int32, error) {
	lex := newLexer(r)
	var parts []int32
	for !lex.atEnd() {
		part, ok, err := lex.number()
		if err != nil {
			return nil, err
		}
		switch {
		case !ok:
			return nil, lex.fail("no part")
		case len(parts) == vertices:
			return nil, lex.fail("more parts than %d vertices", vertices)
		case part < -1 || part >= cut.MaxParts:
			return nil, lex.fail("part %d, want 0 to %d, or -1 for none", part, cut.MaxParts-1)
		}
		parts = append(parts, int32(part))
		if err := lex.endLine(); err != nil {
			return nil, err
		}
	}
	if len(parts) != vertices {
		return nil, lex.fail("%d parts, want one for each of %d vertices", len(parts), vertices)
	}
	return parts, nil
}

// WriteParts writes the parts of vertices, a line each.
func WriteParts(w io.Writer, parts []int32) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for _, part := range parts {
		line = append(strconv.AppendInt(line[:0], int64(part), 10), '\n')
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("write parts: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write parts: %w", err)
	}
	return nil
}
