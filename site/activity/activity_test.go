package activity

import (
	"fmt"
	"testing"
)

// TestLog: an entity is noted from the first question on, and answers tell what came after a
// time.
func TestLog(t *testing.T) {
	var l Log
	l.Note("vm", Point{AtMS: 1}, nil)
	if points, moves, fresh := l.Ask("vm", 0, 1000); len(points) != 0 || len(moves) != 0 || !fresh {
		t.Errorf("%v %v %t", points, moves, fresh)
	}
	for at := int64(2000); at <= 5000; at += 1000 {
		l.Note("vm", Point{AtMS: at, Granted: at}, []Move{{AtMS: at - 1, Tokens: at}})
	}
	points, moves, fresh := l.Ask("vm", 3000, 5000)
	if len(points) != 2 || points[0].AtMS != 4000 || len(moves) != 2 || moves[0].AtMS != 3999 || fresh {
		t.Errorf("%v %v %t", points, moves, fresh)
	}
	l.Drop("vm")
	if _, _, fresh := l.Ask("vm", 0, 5000); !fresh {
		t.Error("a dropped entity was kept")
	}
}

// TestBounds: neither points nor entities grow without end. The entity asked for longest ago
// makes room, and entities that nobody asks for end.
func TestBounds(t *testing.T) {
	var l Log
	for i := range int64(maxEntities + 1) {
		l.Ask(fmt.Sprint("e", i), 0, i+1)
	}
	if names, ended := l.Entities(maxEntities + 1); len(names) != maxEntities || names[0] != "e1" || len(ended) != 0 {
		t.Errorf("%d entities, the first is %s, %q ended", len(names), names[0], ended)
	}
	for at := range int64(10_000) {
		l.Note("e1", Point{AtMS: at}, []Move{{AtMS: at}})
	}
	points, moves, _ := l.Ask("e1", -1, 100)
	if len(points) != maxPoints || points[len(points)-1].AtMS != 9999 || len(moves) != maxMoves || moves[0].AtMS != 10_000-maxMoves {
		t.Errorf("%d points, %d moves", len(points), len(moves))
	}
	if names, ended := l.Entities(100 + keepFor); len(names) != 1 || names[0] != "e1" || len(ended) != maxEntities-1 {
		t.Errorf("%q are kept, %d ended", names, len(ended))
	}
}
