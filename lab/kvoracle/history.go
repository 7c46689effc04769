package kvoracle

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
)

// never is the return of a request of unknown outcome.
const never = math.MaxInt64

// absent is the id of no value.
const absent = 0

// kind is what a request does.
type kind uint8

const (
	read kind = iota
	write
	remove
	scan
	execute
)

func (k kind) String() string {
	return [...]string{"read", "write", "delete", "scan", "execute"}[k]
}

// outcome is a client's knowledge of its request.
type outcome uint8

const (
	done outcome = iota
	// refused requests have no effect.
	refused
	// unknown requests may have taken effect.
	unknown
)

// access is a key and the id of the value seen or written.
type access struct {
	key     int
	id      uint64
	version uint64 // of keys changed by Execute alone
}

// op is a request. Ids are unique: each value identifies its writer.
type op struct {
	kind      kind
	client    int
	call, ret int64
	outcome   outcome
	reads     []access
	writes    []access
	// before are earlier requests of a pipeline on the same key.
	before []*op
	// late is set when an abandoned Execute runs after all.
	late *atomic.Pointer[late]
}

// clock is the clock of all clients: a request that returned before the call of
// another has the lower time.
type clock struct{ ticks atomic.Int64 }

func (c *clock) now() int64 { return c.ticks.Add(1) }

// text renders a request for reports.
func (l *Load) text(o *op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d %v [%d, ", o.client, o.kind, o.call)
	if o.ret == never {
		b.WriteString("?]")
	} else {
		fmt.Fprintf(&b, "%d]", o.ret)
	}
	list := func(what string, all []access) {
		const most = 12
		if len(all) == 0 {
			return
		}
		fmt.Fprintf(&b, " %s", what)
		for i, a := range all {
			if i == most {
				fmt.Fprintf(&b, " and %d more", len(all)-most)
				break
			}
			fmt.Fprintf(&b, " %s=%s", l.keys[a.key].name, idText(a.id))
		}
	}
	list("saw", o.reads)
	list("set", o.writes)
	return b.String()
}

// The id of a value consists of its writer and a number of the writer's.
const idBits = 40

func idText(id uint64) string {
	if id == absent {
		return "none"
	}
	return fmt.Sprintf("%d.%d", id>>idBits, id&(1<<idBits-1))
}
