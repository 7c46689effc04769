package kvpart

import (
	"slices"
	"sync"
	"sync/atomic"
)

// suspects are copies of keys that are not those that count: a removal failed, or
// it is unknown whether a write did. They must be removed before the key is, or it
// would be found again when the store is opened. Those of a key belong to who runs
// alone on it.
type suspects struct {
	lock   sync.Mutex
	copies map[string][]*home
	count  atomic.Int64 // keys that have some
}

// suspect notes that h may hold a copy of key.
func (s *suspects) suspect(key string, h *home) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if slices.Contains(s.copies[key], h) {
		return
	}
	if s.copies == nil {
		s.copies = make(map[string][]*home)
	}
	h.keys.Add(1)
	s.copies[key] = append(s.copies[key], h)
	s.count.Store(int64(len(s.copies)))
}

// clear removes the copies of key but that at its home, which may be nil. After an
// error some are left.
func (s *suspects) clear(key string, at *home) error {
	if s.count.Load() == 0 {
		return nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for {
		copies := s.copies[key]
		if len(copies) == 0 {
			delete(s.copies, key)
			s.count.Store(int64(len(s.copies)))
			return nil
		}
		if h := copies[0]; h != at {
			if err := h.engine.Delete(key); err != nil {
				return err
			}
		}
		copies[0].keys.Add(-1)
		s.copies[key] = copies[1:]
	}
}

// some returns a key that has suspects, and whether there is one.
func (s *suspects) some() (string, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key := range s.copies {
		return key, true
	}
	return "", false
}
