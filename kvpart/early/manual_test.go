package early

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// noted is a job that notes its runs.
type noted struct{ runs, thread int }

func (n *noted) Run(thread int) { n.runs, n.thread = n.runs+1, thread }

// TestManual steps all modes in random orders: each request runs once, after the earlier
// ones that conflict with it, and threads that park are woken.
func TestManual(t *testing.T) {
	classes, mapping, err := Shards(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range Modes() {
		for seed := range uint64(30) {
			t.Run(fmt.Sprintf("%v/%d", mode, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				m, err := NewManual(Options{Mode: mode, Classes: classes, Mapping: mapping, Queue: 3})
				if err != nil {
					t.Fatal(err)
				}
				var jobs []*noted
				var class []int
				var over []bool
				running := make([]int, mapping.Threads)
				asleep, stopped := make([]bool, mapping.Threads), 0
				left, closed := false, false
				wake := func(woken []int) {
					for _, w := range woken {
						if !asleep[w] {
							t.Fatalf("thread %d woken awake", w)
						}
						asleep[w] = false
					}
				}
				for steps := 0; stopped < mapping.Threads; steps++ {
					if steps > 200_000 {
						t.Fatalf("no end: %+v", m.Stats())
					}
					i := rnd.IntN(mapping.Threads + 1)
					if i == mapping.Threads {
						switch {
						case left:
							step := m.Push()
							wake(step.Woken)
							left = !step.Complete
						case len(jobs) < 60:
							jobs, class, over = append(jobs, new(noted)), append(class, rnd.IntN(classes.Len())), append(over, false)
							m.Add(class[len(jobs)-1], jobs[len(jobs)-1])
							left = true
						case !closed:
							closed = true
							wake(m.Close())
						}
						continue
					}
					if asleep[i] || running[i] < 0 {
						continue
					}
					step := m.Step(i)
					wake(step.Woken)
					switch step.Kind {
					case StepStart:
						at := slices.Index(jobs, step.Job.(*noted))
						for j := range at {
							if classes.Conflicts(class[at], class[j]) && !over[j] {
								t.Fatalf("request %d began before %d had ended", at, j)
							}
						}
						if step.Class != class[at] {
							t.Fatalf("class %d, want %d", step.Class, class[at])
						}
					case StepFinish, StepEnd:
						over[slices.Index(jobs, step.Job.(*noted))] = true
					}
					if step.Outcome == Stopped {
						running[i] = -1
						stopped++
					}
					// Park as a thread does: a further look, then sleep.
					if step.Outcome == Waiting || step.Outcome == Idle {
						m.Park(i)
						asleep[i] = true
						for {
							again := m.Step(i)
							wake(again.Woken)
							if again.Kind == StepStart || again.Kind == StepFinish || again.Kind == StepEnd {
								t.Fatalf("%v right after a vain look", again)
							}
							if again.Outcome == Moved && again.Hunting {
								continue
							}
							if again.Outcome == Moved || again.Outcome == Stopped {
								m.Unpark(i)
								asleep[i] = false
							}
							break
						}
					}
				}
				for i, j := range jobs {
					if j.runs != 1 || !over[i] {
						t.Errorf("request %d ran %d times", i, j.runs)
					}
				}
				if s := m.Stats(); s.Ran != int64(len(jobs)) || (s.Stolen > 0) != (s.Steals > 0) || s.Stolen > 0 && !mode.steals() {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// TestManualSteps follows a write through busy-wait, step by step.
func TestManualSteps(t *testing.T) {
	classes, mapping, err := Shards(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewManual(Options{Mode: BusyWait, Classes: classes, Mapping: mapping, Queue: 1})
	if err != nil {
		t.Fatal(err)
	}
	job := new(noted)
	m.Add(1, job)
	want := func(got Taken, kind Kind, outcome Outcome) Taken {
		t.Helper()
		if got.Kind != kind || got.Outcome != outcome {
			t.Fatalf("%+v, want kind %d, outcome %d", got, kind, outcome)
		}
		return got
	}
	if s := want(m.Push(), StepAppend, Moved); s.Other != 0 || s.Complete {
		t.Errorf("%+v", s)
	}
	want(m.Step(0), StepDrain, Moved)
	want(m.Step(0), StepNext, Moved)
	if s := want(m.Step(0), StepMarkers, Moved); s.Count != 2 {
		t.Errorf("%+v", s)
	}
	if s := want(m.Step(0), StepArrive, Moved); s.Complete {
		t.Errorf("%+v", s)
	}
	want(m.Step(0), StepWatch, Waiting)
	m.Park(0)
	want(m.Step(0), StepWatch, Waiting)
	if s := want(m.Push(), StepAppend, Moved); s.Other != 1 || !s.Complete {
		t.Errorf("%+v", s)
	}
	m.Add(0, new(noted)) // a read, for thread 0
	if s := want(m.Push(), StepAppend, Moved); !slices.Equal(s.Woken, []int{0}) {
		t.Errorf("%+v", s)
	}
	m.Park(0)
	want(m.Step(0), StepWatch, Waiting)
	m.Add(1, new(noted))
	if s := want(m.Push(), StepAppend, Waiting); s.Other != 0 {
		t.Errorf("%+v", s)
	}
	for range 3 {
		m.Step(1)
	}
	if s := want(m.Step(1), StepArrive, Moved); !s.Complete {
		t.Errorf("%+v", s)
	}
	if s := want(m.Step(1), StepStart, Moved); s.Job != job || job.runs != 1 || job.thread != 1 {
		t.Errorf("%+v, %+v", s, job)
	}
	want(m.Step(1), StepFinish, Moved)
	if s := want(m.Step(1), StepOpen, Moved); !slices.Equal(s.Woken, []int{0}) {
		t.Errorf("%+v", s)
	}
	want(m.Step(0), StepWatch, Moved)
	defer func() {
		if recover() == nil {
			t.Error("a second Add before the first request was in all queues")
		}
	}()
	m.Add(0, job)
}
