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
// error some suspects are left. No lock is held while an engine writes.
func (s *suspects) clear(key string, at *home) error {
	if s.count.Load() == 0 {
		return nil
	}
	for {
		h := s.first(key)
		if h == nil {
			return nil
		}
		if h != at {
			if err := h.engine.Delete(key); err != nil {
				return err
			}
		}
		s.acquit(key, 0)
		h.keys.Add(-1)
	}
}

// first returns the first suspect of key, nil if it has none.
func (s *suspects) first(key string) *home {
	s.lock.Lock()
	defer s.lock.Unlock()
	if copies := s.copies[key]; len(copies) > 0 {
		return copies[0]
	}
	return nil
}

// acquit takes a suspect off the list.
func (s *suspects) acquit(key string, i int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	copies := slices.Delete(s.copies[key], i, i+1)
	if s.copies[key] = copies; len(copies) == 0 {
		delete(s.copies, key)
	}
	s.count.Store(int64(len(s.copies)))
}

// pick takes a suspect of key off the list: a suspect at only, unless only is nil. The
// suspect goes on to count as a key of its home. It returns nil if there is none. A suspect at the home
// at of the key is none.
func (s *suspects) pick(key string, at, only *home) *home {
	s.lock.Lock()
	copies := slices.Clone(s.copies[key])
	s.lock.Unlock()
	if i := slices.Index(copies, at); i >= 0 {
		s.acquit(key, i)
		at.keys.Add(-1)
		copies = slices.Delete(copies, i, i+1)
	}
	for i, h := range copies {
		if only == nil || h == only {
			s.acquit(key, i)
			return h
		}
	}
	return nil
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

// sample returns up to n keys that have suspects.
func (s *suspects) sample(n int) (keys []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key := range s.copies {
		if len(keys) == n {
			break
		}
		keys = append(keys, key)
	}
	return keys
}
