package failuretest

import (
	"fmt"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/proc"
)

// traced is what strace shows for parseTrace.
var traced = []string{"-tt", "-yy", "-xx", "-s", "128", "-e", "trace=pwrite64,fdatasync,write,sendto,sendmsg,writev"}

// TestAnAnswerLeavesOnlyAfterItsCommitIsSynced watches the system calls of a
// running site while one client acquires and releases, one request at a time.
func TestAnAnswerLeavesOnlyAfterItsCommitIsSynced(t *testing.T) {
	needStrace(t)
	requests := pick(100, 1000)
	cluster := start(t, proc.Config{Sites: []string{"us"}})
	c := dial(t, cluster.Site(0))
	create(t, 10, c)
	tr := attach(t, cluster.Site(0).PID(), traced...)
	for i := range requests {
		var err error
		if id := fmt.Sprint("move-", i); i%2 == 0 {
			_, err = c.acquire(t.Context(), id, 1, time.Second)
		} else {
			_, err = c.release(t.Context(), id, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tr.detach()
	calls, err := parseTrace(tr.text())
	if err != nil {
		t.Fatal(err)
	}
	answers, err := checkAnswers(calls, c.localAddr())
	if err != nil {
		t.Fatal(err)
	}
	if answers != requests {
		t.Errorf("%d answers seen, want %d", answers, requests)
	}
	t.Logf("%d answers, each after a commit of its own that was synced: pages, fdatasync, meta page, fdatasync", answers)
}
