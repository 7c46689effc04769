package virtual

// Event is something that happens. A pointer to what keeps its state costs no
// memory to have happen, which a func that catches variables does.
type Event interface{ Happen() }

// call is a func as an event.
type call func()

// Happen implements Event.
func (c call) Happen() { c() }

// nowhere is the place of events that depend on none.
const nowhere = -1

// event is an Event in the queue of a world.
type event struct {
	what Event
	// to is the place where it happens, if that has not crashed since life, and from
	// the place that has to reach it; or nowhere.
	to, from int32
	life     int32
}
