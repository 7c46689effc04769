package journal

import (
	"fmt"
	"io"
)

// carry writes an overlay to the base, in several transactions.
type carry struct {
	base     Base
	segments []*segment
	// through is stored by the last transaction.
	through Number
	// limit is about how many bytes a transaction may write.
	limit int
	// todo are the operations still to be written; ops and chunk are the memory of a
	// transaction.
	todo  []pending
	ops   []Op
	chunk []byte
}

// write does a single transaction and reports whether it was the last.
func (c *carry) write() (done bool, err error) {
	n, size := 0, 0
	// A DeleteBelow goes alone: it may be long.
	for n < len(c.todo) && (n == 0 || size+c.todo[n].size() <= c.limit && c.todo[n-1].kind != DeleteBelow) {
		size += c.todo[n].size()
		n++
	}
	if cap(c.chunk) < size {
		c.chunk = make([]byte, 0, max(size, c.limit))
	}
	c.ops, c.chunk = c.ops[:0], c.chunk[:0]
	for i := range c.todo[:n] {
		op, err := c.op(&c.todo[i])
		if err != nil {
			return false, err
		}
		c.ops = append(c.ops, op)
	}
	c.todo = c.todo[n:]
	var through *Number
	if len(c.todo) == 0 {
		through = &c.through
	}
	if err := c.base.Apply(c.ops, through); err != nil {
		return false, fmt.Errorf("writing to the base: %w", err)
	}
	return through != nil, nil
}

// op makes an operation whose key and value lie in chunk.
func (c *carry) op(p *pending) (Op, error) {
	op := Op{Kind: p.kind, Bucket: p.bucket}
	from := len(c.chunk)
	c.chunk = append(c.chunk, p.key...)
	op.Key = c.chunk[from:len(c.chunk):len(c.chunk)]
	if p.kind != Put {
		return op, nil
	}
	from = len(c.chunk)
	c.chunk = c.chunk[:from+int(p.length)]
	op.Value = c.chunk[from:len(c.chunk):len(c.chunk)]
	s := c.segments[p.segment]
	if n, err := s.file.ReadAt(op.Value, p.at); n < len(op.Value) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return Op{}, fmt.Errorf("reading %s at %d: %w", s.name, p.at, err)
	}
	return op, nil
}

// size is the operation's share of a transaction, in bytes.
func (p *pending) size() int { return len(p.key) + int(p.length) }
