package rivals

import "github.com/samya-db/samya/lab/virtual"

// disk makes transactions of a site durable. Transactions that come during a write
// share the next write.
type disk struct {
	w                *virtual.World
	place            virtual.Place
	busy             bool
	waiting, writing []func()
}

// commit calls do once the transaction is durable, in the order of the calls. do
// makes all changes and sends all answers: a crash forgets all of a transaction or
// nothing.
func (d *disk) commit(do func()) {
	d.waiting = append(d.waiting, do)
	if !d.busy {
		d.write()
	}
}

func (d *disk) write() {
	d.busy = true
	d.writing, d.waiting = d.waiting, d.writing[:0]
	d.w.Commit(d.place, d.written)
}

func (d *disk) written() {
	for i, do := range d.writing {
		d.writing[i] = nil
		do()
	}
	if d.busy = len(d.waiting) > 0; d.busy {
		d.write()
	}
}

// crash forgets the transactions that are not durable.
func (d *disk) crash() { d.busy, d.waiting, d.writing = false, nil, nil }
