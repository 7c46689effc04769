package stored

import "slices"

// Blocks are blocks of requests on a disk. A site may remember so many requests that they
// fit into memory once, but not twice: so they are handed over block by block.
type Blocks interface {
	// Each calls f with each block, in the order of their sequences. The block and its
	// Records are valid until f returns; their parts and tenants stay valid. Each returns
	// the error of f, or of reading a block, and ends with it.
	Each(f func(*Block) error) error
}

// BlockList are blocks in memory, in the order of their sequences.
type BlockList []Block

// Each implements Blocks.
func (l BlockList) Each(f func(*Block) error) error {
	for i := range l {
		if err := f(&l[i]); err != nil {
			return err
		}
	}
	return nil
}

// EachBlock calls f with each block; see Blocks.
func (r *Restored) EachBlock(f func(*Block) error) error {
	if r.Blocks == nil {
		return nil
	}
	return r.Blocks.Each(f)
}

// AllBlocks reads all blocks into memory, and has EachBlock take them from there. The
// error is that of reading them.
func (r *Restored) AllBlocks() (BlockList, error) {
	var all BlockList
	err := r.EachBlock(func(b *Block) error {
		all = append(all, Block{
			Sequence: b.Sequence, Wall: b.Wall, Records: slices.Clone(b.Records), Sessions: append([]Session(nil), b.Sessions...),
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.Blocks = nil; len(all) > 0 {
		r.Blocks = all
	}
	return all, nil
}
