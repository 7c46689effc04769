package kvoracle

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
)

// never is the return of a request whose outcome nobody was told.
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

// outcome is what a client knows of its request.
type outcome uint8

const (
	done outcome = iota
	// refused requests were not done.
	refused
	// unknown requests were done or not.
	unknown
)

// access is a key with the id of the value that was seen or written there.
type access struct {
	key     int
	id      uint64
	version uint64 // of keys that are changed by Execute alone
}

// op is a request. Its ids are unique, so that each value tells who wrote it.
type op struct {
	kind      kind
	client    int
	call, ret int64
	outcome   outcome
	reads     []access
	writes    []access
	// before are requests on the same key that were handed over before.
	before []*op
	// late is what an Execute did that was given up, once it did it.
	late *atomic.Pointer[late]
}

// clock is one for all clients: a request that returned before another was
// called has the lower time.
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

// The id of a value is that of its writer and a number of the writer's.
const idBits = 40

func idText(id uint64) string {
	if id == absent {
		return "none"
	}
	return fmt.Sprintf("%d.%d", id>>idBits, id&(1<<idBits-1))
}
