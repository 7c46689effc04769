package reads

import (
	"container/list"
	"maps"
	"sync"
)

// maxSeen bounds the entities with remembered figures.
const maxSeen = 10_000

// lastSeen remembers the figures of the entities read last, by site.
type lastSeen struct {
	mu    sync.Mutex
	most  int
	byKey map[string]*list.Element
	order *list.List // of *seenEntity, latest first
}

type seenEntity struct {
	entity  string
	figures map[string]figure
}

func newLastSeen(most int) *lastSeen {
	return &lastSeen{most: most, byKey: map[string]*list.Element{}, order: list.New()}
}

// get returns a copy of entity's figures.
func (l *lastSeen) get(entity string) map[string]figure {
	l.mu.Lock()
	defer l.mu.Unlock()
	el, ok := l.byKey[entity]
	if !ok {
		return nil
	}
	l.order.MoveToFront(el)
	return maps.Clone(el.Value.(*seenEntity).figures)
}

// put stores figures as the figures of entity, except that newer stored figures stay:
// reads overlap.
func (l *lastSeen) put(entity string, figures map[string]figure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	el, ok := l.byKey[entity]
	if !ok {
		el = l.order.PushFront(&seenEntity{entity: entity})
		l.byKey[entity] = el
	}
	l.order.MoveToFront(el)
	e := el.Value.(*seenEntity)
	kept := maps.Clone(figures)
	for site, f := range figures {
		if h, ok := e.figures[site]; ok && h.generation >= f.generation && h.seen.After(f.seen) {
			kept[site] = h
		}
	}
	e.figures = kept
	for l.order.Len() > l.most {
		oldest := l.order.Back()
		delete(l.byKey, oldest.Value.(*seenEntity).entity)
		l.order.Remove(oldest)
	}
}
