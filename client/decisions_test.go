package client

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// decision is a row of the table of decisions that all clients share.
type decision struct {
	Name   string    `json:"name"`
	Kind   string    `json:"kind"`
	Resume *resumeAt `json:"resume"`
	Tries  []struct {
		Sent    resumeAt `json:"sent"`
		Outcome struct {
			Kind    string   `json:"kind"`
			Reason  string   `json:"reason"`
			Site    string   `json:"site"`
			Attempt uint32   `json:"attempt"`
			Tried   []string `json:"tried"`
		} `json:"outcome"`
		Settled bool `json:"settled"`
	} `json:"tries"`
	Over  string `json:"over"`
	Final *struct {
		Reason string    `json:"reason"`
		Resume *resumeAt `json:"resume"`
	} `json:"final"`
}

type resumeAt struct {
	Attempt uint32   `json:"attempt"`
	Tried   []string `json:"tried"`
}

// decider is a movement or a question.
type decider interface {
	sent() resumeAt
	told(r *samyav1.Result, fate mux.Fate, err error) (settled bool)
	ends(over error) error
}

func (m *movement) sent() resumeAt {
	attempt, tried := m.next()
	return resumeAt{attempt, tried}
}

func (m *movement) told(r *samyav1.Result, fate mux.Fate, err error) bool {
	return m.judge(r, fate, err, "")
}
func (m *movement) ends(over error) error { return m.final(over) }

func (q *question) sent() resumeAt { return resumeAt{} }

func (q *question) told(r *samyav1.Result, fate mux.Fate, err error) bool {
	switch {
	case r.GetFailure() != nil:
		err = apierr.FromFailure(r.GetFailure())
	case fate == mux.Answered:
		return true
	}
	return q.judge(fate, err)
}
func (q *question) ends(over error) error { return q.failed(q.end(over)) }

// TestDecisions plays the table of decisions that the clients of other languages play.
func TestDecisions(t *testing.T) {
	b, err := os.ReadFile("../clients/conformance/decisions.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []decision
	if err := json.Unmarshal(b, &table); err != nil {
		t.Fatal(err)
	}
	if len(table) < 20 {
		t.Fatalf("the table has %d rows", len(table))
	}
	for _, d := range table {
		t.Run(d.Name, func(t *testing.T) { d.play(t) })
	}
}

func (d *decision) decider() decider {
	switch d.Kind {
	case "read":
		return &question{entity: "acme/vm"}
	case "change":
		return &question{entity: "acme/vm", requestID: "id-1", moves: true}
	case "release":
		m := newRelease("acme/vm", 1, nil)
		d.begin(m)
		return m
	}
	var opts []AcquireOption
	if d.Kind == "dry" {
		opts = append(opts, DryRun())
	}
	m := newAcquire("acme/vm", 1, opts)
	d.begin(m)
	return m
}

func (d *decision) begin(m *movement) {
	m.id, m.notAfter = "id-1", time.UnixMilli(5000)
	if d.Resume != nil {
		m.resume(&Error{RequestID: "id-1", Attempt: d.Resume.Attempt, NotAfter: m.notAfter, Tried: d.Resume.Tried})
	}
}

func (d *decision) play(t *testing.T) {
	t.Helper()
	m := d.decider()
	for i, try := range d.Tries {
		if got := m.sent(); got.Attempt != try.Sent.Attempt || !slices.Equal(got.Tried, try.Sent.Tried) {
			t.Errorf("try %d: sent %+v, want %+v", i+1, got, try.Sent)
		}
		var result *samyav1.Result
		fate, err := mux.Answered, error(nil)
		switch o := try.Outcome; o.Kind {
		case "unsent":
			fate, err = mux.Unsent, errors.New("refused")
		case "lost":
			fate, err = mux.Lost, errors.New("broken")
		case "refused":
			e := &apierr.Error{Reason: apierr.Reason(o.Reason), Site: o.Site, Attempt: o.Attempt, Tried: o.Tried}
			result = &samyav1.Result{Result: &samyav1.Result_Failure{Failure: e.Failure()}}
		default:
			result = &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{}}}
			if d.Kind == "release" {
				result = &samyav1.Result{Result: &samyav1.Result_Release{Release: &samyav1.ReleaseResponse{}}}
			}
		}
		if got := m.told(result, fate, err); got != try.Settled {
			t.Errorf("try %d: settled %t, want %t", i+1, got, try.Settled)
		}
	}
	if d.Final == nil {
		return
	}
	over := map[string]error{"": nil, "deadline": context.DeadlineExceeded, "canceled": context.Canceled}[d.Over]
	e, _ := errors.AsType[*Error](m.ends(over))
	switch {
	case e == nil || e.Reason != d.Final.Reason || e.Entity != "acme/vm":
		t.Errorf("ends with %+v, want %s of acme/vm", e, d.Final.Reason)
	case d.Final.Resume == nil && e.Attempt != 0:
		t.Errorf("tells attempt %d to go on with, want none", e.Attempt)
	case d.Final.Resume != nil && (e.Attempt != d.Final.Resume.Attempt || !slices.Equal(e.Tried, d.Final.Resume.Tried) ||
		e.RequestID != "id-1" || !e.NotAfter.Equal(time.UnixMilli(5000))):
		t.Errorf("goes on as %q, attempt %d, tried %v, until %v; want %+v", e.RequestID, e.Attempt, e.Tried, e.NotAfter, d.Final.Resume)
	}
}
