package journal

// Number counts commits; the first is 1.
type Number uint64

// Bucket names a set of keys of the base.
type Bucket uint8

// Kind is the effect of an operation.
type Kind uint8

const (
	// Put stores a value under a key, in place of the one there.
	Put Kind = iota + 1
	// Delete removes a key, if it is there.
	Delete
	// DeleteBelow removes all keys that sort before the given key.
	DeleteBelow
)

// Op is one operation.
type Op struct {
	Kind   Kind
	Bucket Bucket
	Key    []byte
	// Value is the value of a Put.
	Value []byte
}

// Base is the target of carrying commits over. Its calls are not concurrent.
type Base interface {
	// Through returns the number through which the base is complete. known is false if
	// no journal was begun for the base.
	Through() (n Number, known bool, err error)
	// Apply carries out operations in order and makes them durable. If through is not
	// nil, the base stores it with them, all or none. Apply retains no part of the
	// operations.
	Apply(ops []Op, through *Number) error
	// Each calls f with the keys of a bucket and their values, in the order of keys,
	// until f fails. f must not retain them.
	Each(b Bucket, f func(key, value []byte) error) error
}
