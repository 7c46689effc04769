package early_test

import (
	"fmt"

	"github.com/samya-db/samya/kvpart/early"
)

// The classes of a counter's requests.
const (
	read = iota
	add
)

// job is a request: a function.
type job func()

// Run implements early.Job.
func (j job) Run(int) { j() }

// Reads of a counter run side by side. An addition runs alone, in the order in which the
// requests were submitted.
func ExampleScheduler() {
	classes, err := early.NewClasses(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	classes.Conflict(read, add)
	classes.Conflict(add, add)
	// Nine of ten requests read.
	mapping, err := classes.Map(4, []float64{read: .9, add: .1})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := early.New(early.Options{Mode: early.BusyWait, Classes: classes, Mapping: mapping})
	if err != nil {
		fmt.Println(err)
		return
	}
	counter := 0
	var seen [3]int
	for i := range seen {
		s.Submit(add, job(func() { counter += 10 }))
		s.Submit(read, job(func() { seen[i] = counter }))
	}
	s.Close() // waits for all of them
	fmt.Println(seen, s.Stats().Ran)
	// Output: [10 20 30] 6
}
