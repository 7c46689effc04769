// Package boltfile finds out whether a bbolt file is whole. bbolt maps a file into memory
// and trusts it. On a damaged file it panics, also in goroutines of its own, or the
// system ends the process. This package reads the file as any other and trusts no byte of
// it. It cannot tell whether values are as they were written: pages have no checksums.
package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// ErrDamaged: a file is not a whole bbolt file.
var ErrDamaged = errors.New("the file is damaged")

// The layout of a file; numbers have the byte order of the machine.
const (
	// headBytes is the length of a page's head. The head is the page's number in 8 bytes,
	// flags and count of elements in 2 each, and the number of further pages in 4.
	headBytes = 16
	// elementBytes is the length of an element of a branch or a leaf.
	elementBytes = 16
	// bucketBytes is the length of the head of a bucket in a leaf: its root page, and a
	// sequence.
	bucketBytes = 16
	// metaBytes is the used part of a meta page after its head, with its sum.
	metaBytes = 64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	// elementBucket marks an element of a leaf that holds a bucket.
	elementBucket = 0x01

	magic   = 0xED0CDAED
	version = 2
	// noFreelist stands in place of the page of the list of free pages.
	noFreelist = ^uint64(0)

	leastPage, mostPage = 1 << 10, 1 << 16
	// deepest bounds the depth of trees and of nested buckets.
	deepest = 64
)

var order = binary.NativeEndian

// Check reads all pages of a file that are in use. Nobody may write to the file
// meanwhile. If the file is damaged, the error wraps ErrDamaged and says where.
func Check(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return check(f, info.Size())
}

// checker is a check under way.
type checker struct {
	file io.ReaderAt
	size int64
	meta meta
	// seen are the pages in use, by number.
	seen []bool
	// buf holds the page read last, unless that is a branch.
	buf []byte
}

// meta is the content of a meta page.
type meta struct {
	pageSize                      int64
	root, freelist, pages, number uint64
}

func check(file io.ReaderAt, size int64) error {
	c := &checker{file: file, size: size}
	if err := c.findMeta(); err != nil {
		return err
	}
	m := &c.meta
	if m.pages < 3 || m.pages > uint64(size/m.pageSize) {
		return damaged("it has %d bytes of the %d that belong to it", size, m.pages*uint64(m.pageSize))
	}
	c.seen, c.buf = make([]bool, m.pages), make([]byte, m.pageSize)
	if err := c.freelist(); err != nil {
		return err
	}
	return c.tree(m.root, nil, nil, 0)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// findMeta takes the newer of the valid meta pages, as bbolt does.
func (c *checker) findMeta() error {
	first, ok, err := c.readMeta(0)
	if err != nil {
		return err
	}
	if ok {
		c.meta = first
	}
	for at := int64(leastPage); at <= mostPage; at <<= 1 {
		second, right, err := c.readMeta(at)
		switch {
		case err != nil:
			return err
		case right && second.pageSize == at && (!ok || at == first.pageSize):
			if !ok || second.number > first.number {
				c.meta = second
			}
			return nil
		}
	}
	if !ok {
		return damaged("neither of its first two pages is right")
	}
	return nil
}

// readMeta reads the meta page at an offset; ok reports whether it is valid.
func (c *checker) readMeta(at int64) (m meta, ok bool, err error) {
	if at+headBytes+metaBytes > c.size {
		return m, false, nil
	}
	var page [headBytes + metaBytes]byte
	if _, err := c.file.ReadAt(page[:], at); err != nil {
		return m, false, err
	}
	b := page[headBytes:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaBytes-8]) // it takes all
	m = meta{
		pageSize: int64(order.Uint32(b[8:])), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		pages: order.Uint64(b[40:]), number: order.Uint64(b[48:]),
	}
	ok = order.Uint32(b) == magic && order.Uint32(b[4:]) == version && order.Uint64(b[56:]) == sum.Sum64() &&
		m.pageSize >= leastPage && m.pageSize <= mostPage && m.pageSize&(m.pageSize-1) == 0
	return m, ok, nil
}

// page is a page that was read, with the further pages that belong to it.
type page struct {
	number uint64
	flags  uint16
	count  int
	// bytes are the whole page, its head included. They are valid until the next page is
	// read, unless it is a branch.
	bytes []byte
}

// wrong returns an error about the page.
func (p *page) wrong(format string, args ...any) error {
	return damaged("page %d: %w", p.number, fmt.Errorf(format, args...))
}

// read reads a page. It fails if another page refers to the same page.
func (c *checker) read(number uint64) (*page, error) {
	p := &page{number: number}
	if number < 2 || number >= c.meta.pages {
		return nil, p.wrong("it is referred to, and there are %d", c.meta.pages)
	}
	head := c.buf[:c.meta.pageSize]
	if _, err := c.file.ReadAt(head, int64(number)*c.meta.pageSize); err != nil {
		return nil, fmt.Errorf("reading page %d: %w", number, err)
	}
	more := uint64(order.Uint32(head[12:]))
	if told := order.Uint64(head); told != number || number+more >= c.meta.pages {
		return nil, p.wrong("it says that it is page %d, with %d more", told, more)
	}
	for n := number; n <= number+more; n++ {
		if c.seen[n] {
			return nil, p.wrong("page %d is referred to twice", n)
		}
		c.seen[n] = true
	}
	p.flags, p.count = order.Uint16(head[8:]), int(order.Uint16(head[10:]))
	p.bytes = head
	if more > 0 {
		p.bytes = make([]byte, int64(more+1)*c.meta.pageSize)
		if _, err := c.file.ReadAt(p.bytes, int64(number)*c.meta.pageSize); err != nil {
			return nil, fmt.Errorf("reading page %d: %w", number, err)
		}
	} else if p.flags == flagBranch {
		p.bytes = bytes.Clone(head)
	}
	return p, nil
}

// freelist checks the list of free pages, if there is one.
func (c *checker) freelist() error {
	if c.meta.freelist == noFreelist {
		return nil
	}
	p, err := c.read(c.meta.freelist)
	if err != nil {
		return err
	}
	if p.flags != flagFreelist {
		return p.wrong("it is no list of free pages")
	}
	ids, count := p.bytes[headBytes:], uint64(p.count)
	if p.count == 0xffff {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return p.wrong("it is a list of %d free pages, and too short for it", count)
	}
	for i := range count {
		if id := order.Uint64(ids[8*i:]); id < 2 || id >= c.meta.pages {
			return p.wrong("it says that page %d is free, and there are %d", id, c.meta.pages)
		}
	}
	return nil
}

// tree checks a page and all pages below it. Their keys must not be below low, and must
// be below high unless it is nil.
func (c *checker) tree(number uint64, low, high []byte, depth int) error {
	p, err := c.read(number)
	if err != nil {
		return err
	}
	if depth > deepest {
		return p.wrong("it is more than %d pages deep", deepest)
	}
	switch p.flags {
	case flagBranch:
		return c.branch(p, low, high, depth)
	case flagLeaf:
		roots, err := p.leaf(nil, low, high, depth)
		for _, root := range roots {
			if err == nil {
				err = c.tree(root, nil, nil, depth+1)
			}
		}
		return err
	default:
		return p.wrong("it is of kind %#x", p.flags)
	}
}

// element returns an element's 16 bytes, its key, and the bytes after the key. The key's
// length is at sizeAt in the 16 bytes, its position 4 bytes before.
func (p *page) element(i, sizeAt int) (raw, key, rest []byte, err error) {
	at := headBytes + i*elementBytes
	if at+elementBytes > len(p.bytes) {
		return nil, nil, nil, p.wrong("it is too short for %d elements", p.count)
	}
	raw = p.bytes[at : at+elementBytes]
	from := uint64(at) + uint64(order.Uint32(raw[sizeAt-4:]))
	to := from + uint64(order.Uint32(raw[sizeAt:]))
	if from < uint64(headBytes+p.count*elementBytes) || to > uint64(len(p.bytes)) || from == to {
		return nil, nil, nil, p.wrong("element %d has a key from byte %d to %d of %d", i, from, to, len(p.bytes))
	}
	return raw, p.bytes[from:to], p.bytes[to:], nil
}

// follows checks that a key is in order.
func (p *page) follows(i int, before, key, high []byte) error {
	switch order := bytes.Compare(before, key); {
	case order > 0, order == 0 && i > 0:
		return p.wrong("key %d is not above the one before", i)
	case high != nil && bytes.Compare(key, high) >= 0:
		return p.wrong("key %d is not below those of the next page", i)
	}
	return nil
}

func (c *checker) branch(p *page, low, high []byte, depth int) error {
	if p.count == 0 {
		return p.wrong("nothing is below it")
	}
	var below []uint64
	var keys [][]byte
	for i := range p.count {
		raw, key, _, err := p.element(i, 4)
		if err != nil {
			return err
		}
		before := low
		if i > 0 {
			before = keys[i-1]
		}
		if err := p.follows(i, before, key, high); err != nil {
			return err
		}
		below, keys = append(below, order.Uint64(raw[8:])), append(keys, key)
	}
	for i, number := range below {
		end := high
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		if err := c.tree(number, keys[i], end, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks the keys of a leaf, and appends the root pages of its buckets to roots.
func (p *page) leaf(roots []uint64, low, high []byte, depth int) ([]uint64, error) {
	for i := range p.count {
		raw, key, rest, err := p.element(i, 8)
		if err != nil {
			return nil, err
		}
		if err := p.follows(i, low, key, high); err != nil {
			return nil, err
		}
		low = key
		length := uint64(order.Uint32(raw[12:]))
		if length > uint64(len(rest)) {
			return nil, p.wrong("the value of key %d has %d bytes, and %d are left", i, length, len(rest))
		}
		switch order.Uint32(raw) {
		case 0:
		case elementBucket:
			if roots, err = p.bucket(roots, i, rest[:length], depth); err != nil {
				return nil, err
			}
		default:
			return nil, p.wrong("key %d is of kind %#x", i, order.Uint32(raw))
		}
	}
	return roots, nil
}

// bucket checks a bucket that is the value of a key. Its root is a page elsewhere, which
// is appended to roots, or a small leaf within the value.
func (p *page) bucket(roots []uint64, i int, value []byte, depth int) ([]uint64, error) {
	if len(value) < bucketBytes {
		return nil, p.wrong("bucket %d has %d bytes", i, len(value))
	}
	if root := order.Uint64(value); root != 0 {
		return append(roots, root), nil
	}
	inner := &page{number: p.number, bytes: value[bucketBytes:]}
	if len(inner.bytes) < headBytes {
		return nil, p.wrong("bucket %d has %d bytes", i, len(value))
	}
	inner.flags, inner.count = order.Uint16(inner.bytes[8:]), int(order.Uint16(inner.bytes[10:]))
	if inner.flags != flagLeaf {
		return nil, p.wrong("bucket %d is of kind %#x", i, inner.flags)
	}
	if depth >= deepest {
		return nil, p.wrong("bucket %d is more than %d deep", i, deepest)
	}
	return inner.leaf(roots, nil, nil, depth+1)
}
