package sched_test

import (
	"context"
	"fmt"

	"github.com/samya-db/samya/kvpart/sched"
)

// transfer moves an amount from the first entry to the second.
type transfer struct {
	req    sched.Request[int]
	amount int
}

func (t *transfer) Run(r *sched.Request[int]) {
	from, to := r.Entries()[0], r.Entries()[1]
	from.Value -= t.amount
	to.Value += t.amount
}

func (t *transfer) End(error) {}

// Requests of entries that the caller has; then an entry is removed.
func ExampleRequest_Of() {
	s, err := sched.New(sched.Options[int]{Partitions: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	a, err := s.Insert("a", sched.Unplaced, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := s.Insert("b", sched.Unplaced, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	t := &transfer{amount: 3}
	t.req.Of([]*sched.Entry[int]{a, b}, sched.Alone, t)
	fmt.Println(s.Do(context.Background(), &t.req), a.Value, b.Value)
	s.Remove(b)
	fmt.Println(s.Do(context.Background(), &t.req), a.Value)
	// Output:
	// <nil> 7 3
	// no such entry 7
}
