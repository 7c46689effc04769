package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/samya-db/samya/site/core/stored"
)

// blocks are the blocks of requests in a base. They may fill most of the memory of a site,
// so a single block is decoded at a time.
type blocks struct {
	from eacher
	// read is called once all were read.
	read func() error
}

// errFound ends the search for a block.
var errFound = errors.New("there is a block")

// findBlocks has the blocks read when they are asked for, if there are any.
func (s *Store) findBlocks(r *stored.Restored) error {
	err := s.base.Each(bucketRequests, func(_, _ []byte) error { return errFound })
	if errors.Is(err, errFound) {
		r.Blocks, err = blocks{s.base, s.loaded}, nil
	}
	return err
}

// holdBlocks has the blocks of a base that is about to be closed read from memory. The
// error is also that of a block that cannot be decoded.
func holdBlocks(base eacher, r *stored.Restored) error {
	if r.Blocks == nil {
		return nil
	}
	in := make(held)
	err := base.Each(bucketRequests, func(k, v []byte) error {
		in[bucketRequests] = append(in[bucketRequests], [2][]byte{bytes.Clone(k), bytes.Clone(v)})
		return nil
	})
	r.Blocks = blocks{in, nothing}
	return errors.Join(err, r.EachBlock(func(*stored.Block) error { return nil }))
}

// Each implements stored.Blocks.
func (b blocks) Each(f func(*stored.Block) error) error {
	var block stored.Block
	err := b.from.Each(bucketRequests, func(k, v []byte) error {
		sequence, err := numberedBy(k)
		if err == nil {
			err = readBlock(&block, sequence, v)
		}
		if err != nil {
			return err
		}
		return f(&block)
	})
	if err = errors.Join(err, b.read()); err != nil {
		return fmt.Errorf("loading the requests: %w", err)
	}
	return nil
}
