package virtual

// Event is an event of a world. Unlike a func that captures variables, a pointer to
// an existing state takes no memory.
type Event interface{ Happen() }

// call is a func as an event.
type call func()

// Happen implements Event.
func (c call) Happen() { c() }

// nowhere is the place of events without a place.
const nowhere = -1

// event is an Event in the queue of a world.
type event struct {
	what Event
	// to is the place of the event, which must not have crashed since life. from is
	// a place that must reach it. Either may be nowhere.
	to, from int32
	life     int32
}
