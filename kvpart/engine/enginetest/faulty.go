package enginetest

import "github.com/samya-db/samya/kvpart/engine"

// Op is a method of an engine.
type Op string

// The methods that may fail.
const (
	OpOpen   Op = "open"
	OpGet    Op = "get"
	OpPut    Op = "put"
	OpDelete Op = "delete"
	OpApply  Op = "apply"
	OpGather Op = "gather"
	OpEach   Op = "each"
	OpClose  Op = "close"
)

// Faulty returns a factory of engines that call fail before each operation, with the key
// or the first of the keys. An operation that fails with fail's error was not done; only
// Close is done all the same. Several goroutines call fail at the same time.
func Faulty(f engine.Factory, fail func(op Op, key string) error) engine.Factory {
	return engine.Factory{Durable: f.Durable, Open: func(c engine.Config) (engine.Engine, error) {
		if err := fail(OpOpen, c.Dir); err != nil {
			return nil, err
		}
		e, err := f.Open(c)
		if err != nil {
			return nil, err
		}
		if c, ok := e.(engine.Counter); ok {
			return &counting{&faulty{e, fail}, c}, nil
		}
		return &faulty{e, fail}, nil
	}}
}

// counting is a faulty engine that counts its bytes.
type counting struct {
	*faulty
	engine.Counter
}

type faulty struct {
	engine.Engine
	fail func(op Op, key string) error
}

func (e *faulty) Get(key string, dst []byte) ([]byte, error) {
	if err := e.fail(OpGet, key); err != nil {
		return dst, err
	}
	return e.Engine.Get(key, dst)
}

func (e *faulty) Put(key string, value []byte) error {
	if err := e.fail(OpPut, key); err != nil {
		return err
	}
	return e.Engine.Put(key, value)
}

func (e *faulty) Delete(key string) error {
	if err := e.fail(OpDelete, key); err != nil {
		return err
	}
	return e.Engine.Delete(key)
}

func (e *faulty) Apply(writes []engine.Write) error {
	if len(writes) > 0 {
		if err := e.fail(OpApply, writes[0].Key); err != nil {
			return err
		}
	}
	return e.Engine.Apply(writes)
}

func (e *faulty) Gather(keys []string, visit func(i int, value []byte) error) error {
	if len(keys) > 0 {
		if err := e.fail(OpGather, keys[0]); err != nil {
			return err
		}
	}
	return e.Engine.Gather(keys, visit)
}

func (e *faulty) Each(visit func(key string, value []byte) error) error {
	if err := e.fail(OpEach, ""); err != nil {
		return err
	}
	return e.Engine.Each(visit)
}

func (e *faulty) Close() error {
	err := e.Engine.Close()
	if failed := e.fail(OpClose, ""); failed != nil {
		return failed
	}
	return err
}
