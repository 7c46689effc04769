// Package activity keeps what was demanded of a few entities at a site in the last minutes,
// and which tokens moved, for people who look at charts. It keeps all in memory, of so many
// entities and so many points at most; the entity asked for longest ago makes room. The
// package asks nobody and knows no clock: points and times are handed in.
package activity

import (
	"slices"
	"sync"
)

const (
	// maxEntities bounds the entities.
	maxEntities = 64
	// maxPoints and maxMoves bound the points and moves of an entity.
	maxPoints, maxMoves = 300, 300
	// keepFor is how long an entity is kept after somebody asked for it, in milliseconds.
	keepFor = 5 * 60 * 1000
)

// Point are the figures of a period that ends at AtMS, in milliseconds since the Unix epoch.
type Point struct {
	AtMS, TookMS int64
	// Granted, Refused and Released are the tokens of the period; Waiting, Left and Net the
	// state at its end.
	Granted, Refused, Released, Waiting, Left, Net int64
	// Forecast is nil if there is none.
	Forecast *Forecast
}

// Forecast is a forecast of the change of Net within HorizonMS milliseconds.
type Forecast struct {
	Expected, Median, High float64
	HorizonMS              int64
}

// Move is a move of tokens between sites; From or To is empty for an instance.
type Move struct {
	AtMS     int64
	From, To string
	Tokens   int64
}

// Log holds the entities that somebody looks at. It may be used from several goroutines.
type Log struct {
	mu       sync.Mutex
	entities map[string]*series
}

type series struct {
	points []Point
	moves  []Move
	// asked is when somebody asked last, in milliseconds since the Unix epoch.
	asked int64
}

// Ask returns what was noted of an entity after a time, and has the entity noted from now on.
// fresh reports whether it was not noted before.
func (l *Log) Ask(entity string, sinceMS, nowMS int64) (points []Point, moves []Move, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.entities[entity]
	if fresh = s == nil; fresh {
		s = l.begin(entity)
	}
	s.asked = nowMS
	for _, p := range s.points {
		if p.AtMS > sinceMS {
			points = append(points, p)
		}
	}
	for _, m := range s.moves {
		if m.AtMS > sinceMS {
			moves = append(moves, m)
		}
	}
	return points, moves, fresh
}

// begin begins to note an entity, in the place of the one asked for longest ago if there are
// too many.
func (l *Log) begin(entity string) *series {
	if l.entities == nil {
		l.entities = make(map[string]*series)
	}
	if len(l.entities) >= maxEntities {
		var oldest string
		for name, s := range l.entities {
			if o := l.entities[oldest]; o == nil || s.asked < o.asked {
				oldest = name
			}
		}
		delete(l.entities, oldest)
	}
	s := &series{}
	l.entities[entity] = s
	return s
}

// Entities returns the entities to be noted, and drops and returns the ones that nobody has
// asked for in a while.
func (l *Log) Entities(nowMS int64) (names, ended []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, s := range l.entities {
		if nowMS > s.asked+keepFor {
			delete(l.entities, name)
			ended = append(ended, name)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, ended
}

// Drop forgets an entity.
func (l *Log) Drop(entity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entities, entity)
}

// Note adds a point and moves of an entity, unless it is no longer to be noted.
func (l *Log) Note(entity string, p Point, moves []Move) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.entities[entity]
	if s == nil {
		return
	}
	s.points = last(append(s.points, p), maxPoints)
	s.moves = last(append(s.moves, moves...), maxMoves)
}

// last returns the last n of a list, in memory that does not grow.
func last[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return append(list[:0], list[len(list)-n:]...)
}
