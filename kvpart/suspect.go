package kvpart

import (
	"slices"
	"sync"
	"sync/atomic"
)

// suspects are stale copies of keys: a removal failed, or a write had an unknown outcome.
// They must be removed before the key is, or the key would be found again when the store
// is opened. The suspects of a key belong to the request that runs alone on it.
type suspects struct {
	lock   sync.Mutex
	copies map[string][]*home
	count  atomic.Int64 // keys that have suspects
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

// clear removes the suspects of key, except at its home at, which may be nil. After an
// error some suspects are left.
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

// some returns a key that has suspects, and whether any exists.
func (s *suspects) some() (string, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key := range s.copies {
		return key, true
	}
	return "", false
}
