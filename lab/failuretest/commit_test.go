package failuretest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

// traced selects the system calls of strace's output for parseTrace.
var traced = []string{"-tt", "-yy", "-xx", "-s", "128", "-e", "trace=pwrite64,fdatasync,write,sendto,sendmsg,writev"}

// TestAnAnswerLeavesOnlyAfterItsCommitIsSynced watches the system calls of a running site
// while a client acquires and releases in sequence.
func TestAnAnswerLeavesOnlyAfterItsCommitIsSynced(t *testing.T) {
	beside(t)
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
	report(t, figures{{"answers", answers}})
	t.Logf("%d answers, each after a commit of its own that was written to the log and synced", answers)
}

// TestANewDatabaseHasItsNameOnceItIsWhole watches the first start of a site. The site
// syncs its database under another name, gives it its own name, and syncs the directory
// of this name. It does the same with the first segment of the log. Only then does the
// database record that it has a log, after a sync of its earlier content.
func TestANewDatabaseHasItsNameOnceItIsWhole(t *testing.T) {
	beside(t)
	needStrace(t)
	cluster := start(t, proc.Config{Sites: []string{"us"}})
	site := cluster.Site(0)
	kill(t, site)
	if err := os.RemoveAll(site.Data); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "strace")
	site.Under = []string{
		"strace", "-D", "-f", "-q", "-y", "-o", output,
		"-e", "trace=link,linkat," + dataCallNames, "--",
	}
	restart(t, site)
	pid := site.PID()
	kill(t, site)
	var word strings.Builder
	// The beginnings of the calls: a site that serves has seen them succeed.
	calls := map[string]*regexp.Regexp{
		"w": regexp.MustCompile(`^\d+ +pwrite64\(\d+<[^>]*/site\.db[^>]*>`),
		"s": regexp.MustCompile(`^\d+ +fdatasync\(\d+<[^>]*/site\.db[^>]*>`),
		"W": regexp.MustCompile(`^\d+ +pwrite64\(\d+<[^>]*/journal-[^>]*>`),
		"S": regexp.MustCompile(`^\d+ +fdatasync\(\d+<[^>]*/journal-[^>]*>`),
		"R": regexp.MustCompile(`^\d+ +rename\w*\(.*/journal-[0-9a-f]{16}"`),
		"N": regexp.MustCompile(`^\d+ +(link|rename)\w*\(.*/site\.db"`),
		"D": regexp.MustCompile(`^\d+ +fsync\(\d+<` + regexp.QuoteMeta(site.Data) + `>`),
	}
	for line := range strings.Lines(traceOf(t, output, pid)) {
		for letter, call := range calls {
			if call.MatchString(line) {
				word.WriteString(letter)
			}
		}
	}
	if want := regexp.MustCompile(`^(w+s)+NDW+SRD+s(w+s)+[wsWS]*$`); !want.MatchString(word.String()) {
		t.Errorf("a first start does %q, want %s: writes, syncs, the name, the directory, of the database and of the log", word.String(), want)
	}
}
