package multipaxsys_test

import (
	"testing"
	"time"

	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/lab/rivals/multipaxsys"
)

// TestReplay: the system runs the load of the experiments, with reads, crashes and cuts.
func TestReplay(t *testing.T) {
	d, err := replay.Draw("fit", 1, 36)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = d.WithReads(.2, true, 1); err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		for name, faults := range map[string][]replay.Fault{
			"none": nil,
			"crashes": {
				replay.Crash(30*time.Second, sa), replay.Crash(60*time.Second, us), replay.Crash(90*time.Second, au),
				replay.Restart(120*time.Second, us),
			},
			"cut": {replay.Cut(30*time.Second, 0, 0, 0, 1, 1), replay.Heal(100 * time.Second)},
		} {
			s, err := multipaxsys.New(multipaxsys.Options{Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			r, err := replay.Run(replay.Options{Demand: d, Network: s.Network(), Faults: faults}, s)
			if err != nil {
				t.Errorf("%s, %s: %v", mode, name, err)
				continue
			}
			for i, w := range r.Windows {
				if name == "crashes" && i == 9 {
					// Requests on their way as the majority ended still arrive.
					continue
				}
				committed, down := 0, name == "crashes" && i > 9 && i < 12
				for _, n := range w.Places {
					committed += n
				}
				if (committed == 0) != down {
					t.Errorf("%s, %s: %d committed %d s after the start", mode, name, committed, 10*i)
				}
			}
			if name == "none" && mode == multipaxsys.Batched && (r.Refused > 0 || r.TimedOut > 0 || r.Reads != r.ReadsAsked) {
				t.Errorf("%d refused, %d timed out, %d of %d reads done", r.Refused, r.TimedOut, r.Reads, r.ReadsAsked)
			}
		}
	}
}
