package failuretest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/proc"
)

// TestFailingDiskStopsTheSite makes the syncs of a running site fail, or its writes, for
// want of space, while a client sends requests in sequence. The site acknowledges neither
// the request under way nor any later request; it ends and says why. Its next start knows
// all acknowledged requests.
func TestFailingDiskStopsTheSite(t *testing.T) {
	beside(t)
	needStrace(t)
	const limit = 1000
	cluster := start(t, proc.Config{Sites: []string{"us"}})
	site := cluster.Site(0)
	c := dial(t, site)
	create(t, limit, c)
	m := &movers{clients: []*client{c}}
	// strace counts a thread's calls from when it attached: the first sync of a
	// commit makes pages durable, the second the meta page.
	ins := []injection{
		{call: "fdatasync", errno: "EIO", when: "1+"},
		{call: "pwrite64", errno: "ENOSPC", when: "1+"},
		{call: "fdatasync", errno: "EIO", when: "2+"},
		{call: "pwrite64", errno: "ENOSPC", when: "4+"},
	}
	if long() {
		for _, when := range []string{"1", "2", "3+", "4", "7+", "12", "25+"} {
			ins = append(ins, injection{call: "fdatasync", errno: "EIO", when: when}, injection{call: "pwrite64", errno: "ENOSPC", when: when})
		}
	}
	says := map[string]string{"EIO": "input/output error", "ENOSPC": "no space left on device"}
	repeated := 0
	for round, in := range ins {
		m.prefix = fmt.Sprint("failing-", round)
		for range 20 {
			m.move(t.Context())
		}
		tr := attach(t, site.PID(), append(traced, "-e", "inject="+in.String())...)
		acknowledged := len(m.given)
		began := time.Now()
		for len(m.unknown) == 0 && time.Since(began) < patience {
			m.move(t.Context())
		}
		if len(m.unknown) == 0 {
			t.Fatal("no request failed")
		}
		acknowledged = len(m.given) - acknowledged
		for range 3 {
			if a := send(t.Context(), c, answer{id: "later", kind: ledger.Acquire, asked: 1}, 0); a.reason == "" {
				t.Errorf("a request is acknowledged after the failure: %+v", a)
			}
		}
		if status := exitStatus(expectDeath(t, cluster, site)); status <= 0 {
			t.Errorf("the site ends with status %d, want one above 0", status)
		}
		if log := site.Tail(3); !strings.Contains(log, "could not make its state durable") || !strings.Contains(log, says[in.errno]) {
			t.Errorf("the log does not say why the site ended:\n%s", log)
		}
		tr.wait()
		calls, err := parseTrace(tr.text())
		if err != nil {
			t.Fatal(err)
		}
		if after, failed := answersAfterFailure(calls, c.localAddr()); !failed || after != 0 {
			t.Errorf("%s: a call failed: %t; %d answers left the site after that", in, failed, after)
		}
		restart(t, site)
		unknown := m.settle(t)
		again := m.check(t, limit)
		repeated += again
		t.Logf("%s: %d acknowledged meanwhile, %d unknown and settled, %d answers repeated", in, acknowledged, unknown, again)
	}
	report(t, figures{{"failures", len(ins)}, {"answers repeated", repeated}})
}

// TestDiskErrorsAtAnyCall makes writes and syncs of sites fail under load, once or from
// then on, with the errors of a broken and of a full disk. At any such call the site ends
// with an error, and its next start knows all acknowledged requests.
func TestDiskErrorsAtAnyCall(t *testing.T) {
	needStrace(t)
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	h := &hits{began: time.Now(), all: pick(5, 100)}
	v := newVictim(t, fewSetups[0], threeSites...)
	v.begin()
	for n := range h.all {
		in := injection{call: "pwrite64", errno: "ENOSPC", when: fmt.Sprint(2 + rng.IntN(40))}
		if n%2 == 1 {
			in = injection{call: "fdatasync", errno: "EIO", when: fmt.Sprint(3 + rng.IntN(25))}
		}
		if n/2%2 == 1 {
			in.when += "+"
		}
		got, _ := v.round(n, startUp+phase(rng.IntN(int(phases-startUp))), in)
		h.add(t, got)
		if t.Failed() {
			t.Fatalf("after %s", in)
		}
	}
	v.end()
	h.finish(v)
	t.Logf("seed %d: %d failing disks in %s\n%s", seed, h.done, time.Since(h.began).Round(time.Second), h)
	report(t, h.figures())
}
