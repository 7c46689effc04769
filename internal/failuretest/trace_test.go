package failuretest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// systemCall is one system call of a trace. A call that the trace does not see the
// end of has ended 0.
type systemCall struct {
	name string
	// file is what the first argument's descriptor stands for, as strace -yy
	// shows it: a path, or TCP:[local->remote].
	file string
	// data is the start of what was written.
	data []byte
	// offset is where pwrite64 wrote.
	offset int64
	// failed is set if the call returned an error.
	failed bool
	// began and ended are the numbers of the lines that tell of it. strace stops
	// a thread at either, so what is ordered by cause is in that order.
	began, ended int
}

var (
	traceLine   = regexp.MustCompile(`^(\d+) +(?:\d\d:\d\d:\d\d\.\d+ )?(.*)$`)
	traceBegin  = regexp.MustCompile(`^(\w+)\((\d+)<((?:->|[^>])*)>(.*)$`)
	traceResume = regexp.MustCompile(`^<\.\.\. (\w+) resumed>(.*)$`)
	traceData   = regexp.MustCompile(`^, "((?:\\x[0-9a-f]{2})*)"`)
	traceOffset = regexp.MustCompile(`, (\d+)(?:\)| <unfinished)`)
	traceReturn = regexp.MustCompile(`\) += (-?\d+|\?)`)
)

// parseTrace reads what strace -f -tt -yy -xx wrote of pwrite64, fdatasync and
// the calls that write to sockets.
func parseTrace(text string) ([]systemCall, error) {
	var calls []systemCall
	open := make(map[string]int) // by thread: its call under way
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		number := i + 1
		m := traceLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d: %q", number, line)
		}
		thread, rest := m[1], m[2]
		if r := traceResume.FindStringSubmatch(rest); r != nil {
			at, ok := open[thread]
			if !ok || calls[at].name != r[1] {
				return nil, fmt.Errorf("line %d: %s goes on and never began", number, r[1])
			}
			delete(open, thread)
			finish(&calls[at], r[2], number)
			continue
		}
		b := traceBegin.FindStringSubmatch(rest)
		if b == nil {
			continue // a signal, an end, or a call on something that is closed
		}
		c := systemCall{name: b[1], file: unhex(b[3]), began: number}
		if d := traceData.FindStringSubmatch(b[4]); d != nil {
			c.data = []byte(unhex(d[1]))
		}
		if o := traceOffset.FindStringSubmatch(b[4]); o != nil && c.name == "pwrite64" {
			offset, err := strconv.ParseInt(o[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: offset: %w", number, err)
			}
			c.offset = offset
		}
		if strings.HasSuffix(rest, "<unfinished ...>") {
			open[thread] = len(calls)
		} else {
			finish(&c, b[4], number)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func finish(c *systemCall, rest string, number int) {
	r := traceReturn.FindStringSubmatch(rest)
	if r == nil || r[1] == "?" {
		return // the process was gone before it ended
	}
	c.ended, c.failed = number, strings.HasPrefix(r[1], "-")
}

// unhex decodes text in which strace has put every byte as \xNN; other text is
// returned as it is.
func unhex(s string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil || !strings.HasPrefix(s, `\x`) {
		return s
	}
	return string(b)
}

// carriesAnswer reports whether the call writes an HTTP/2 DATA frame to the
// client, which is what an answer that is no refusal comes in.
func (c *systemCall) carriesAnswer(client string) bool {
	if c.name == "pwrite64" || c.name == "fdatasync" || !strings.HasSuffix(c.file, "->"+client+"]") {
		return false
	}
	const header = 9
	for frames := c.data; len(frames) >= header; {
		if frames[3] == 0 {
			return true
		}
		length := int(frames[0])<<16 | int(frames[1])<<8 | int(frames[2])
		frames = frames[min(header+length, len(frames)):]
	}
	return false
}

// The page of the database that a pwrite64 writes: the two meta pages stand
// first, and one of them makes a transaction count.
const metaEnd = 2 * 4096

// letters spells the calls on the database: P a page, M a meta page, S a sync,
// F a sync that failed. Calls must not overlap.
func letters(calls []systemCall) (string, error) {
	var word strings.Builder
	for i, c := range calls {
		if i > 0 && (calls[i-1].ended == 0 || calls[i-1].ended > c.began) {
			return "", fmt.Errorf("line %d: %s begins before the %s of line %d has ended",
				c.began, c.name, calls[i-1].name, calls[i-1].began)
		}
		switch {
		case c.name == "fdatasync" && c.failed:
			word.WriteByte('F')
		case c.name == "fdatasync":
			word.WriteByte('S')
		case c.failed:
			return "", fmt.Errorf("line %d: %s fails", c.began, c.name)
		case c.offset < metaEnd:
			word.WriteByte('M')
		default:
			word.WriteByte('P')
		}
	}
	return word.String(), nil
}

// commits is what may happen to the database between two answers: pages, a
// sync, the meta page, a sync; once or more.
var commits = regexp.MustCompile(`^(P+SMS)+$`)

// checkAnswers checks a trace of a site with one client, who sends one request
// after another: before each answer leaves, a commit of its own was written and
// synced in whole. It returns how many answers it saw.
func checkAnswers(calls []systemCall, client string) (answers int, err error) {
	var since []systemCall
	for _, c := range calls {
		switch {
		case strings.HasSuffix(c.file, "/site.db"):
			since = append(since, c)
		case c.carriesAnswer(client):
			word, err := letters(since)
			switch {
			case err != nil:
				return answers, err
			case !commits.MatchString(word):
				return answers, fmt.Errorf("line %d: an answer leaves after %q on the database, want %s", c.began, word, commits)
			case since[len(since)-1].ended == 0 || since[len(since)-1].ended > c.began:
				return answers, fmt.Errorf("line %d: an answer leaves before the last sync has ended", c.began)
			}
			answers++
			since = nil
		}
	}
	if answers == 0 {
		return 0, errors.New("no answer was seen")
	}
	return answers, nil
}

// answersAfterFailure counts the answers that leave after a write or a sync of
// the database has failed, and tells whether one has.
func answersAfterFailure(calls []systemCall, client string) (answers int, failed bool) {
	at := 0
	for _, c := range calls {
		switch {
		case (c.name == "fdatasync" || c.name == "pwrite64") && c.failed && at == 0:
			at = c.ended
		case at != 0 && c.began > at && c.carriesAnswer(client):
			answers++
		}
	}
	return answers, at != 0
}

// The lines below are cut from a real trace.
const (
	tracePage     = `7 09:00:00.000001 pwrite64(5<\x2f\x73\x69\x74\x65\x2e\x64\x62>, "\x03\x00"..., 4096, 12288) = 4096`
	traceSync     = `7 09:00:00.000002 fdatasync(5<\x2f\x73\x69\x74\x65\x2e\x64\x62>) = 0`
	traceSyncFail = `7 09:00:00.000002 fdatasync(5<\x2f\x73\x69\x74\x65\x2e\x64\x62>) = -1 EIO (Input/output error) (INJECTED)`
	traceMeta     = `7 09:00:00.000003 pwrite64(5<\x2f\x73\x69\x74\x65\x2e\x64\x62>, "\x00\x00"..., 4096, 4096) = 4096`
	tracePing     = `8 09:00:00.000004 write(13<TCP:[127.0.0.1:1->127.0.0.1:2]>, "\x00\x00\x08\x06\x01\x00\x00\x00\x00\x02\x04\x10\x10\x09\x0e\x07\x07", 17) = 17`
	traceAnswer   = `8 09:00:00.000005 write(13<TCP:[127.0.0.1:1->127.0.0.1:2]>, "\x00\x00\x02\x01\x04\x00\x00\x00\x07\x88\xc0\x00\x00\x07\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x02\x08\x01", 27) = 27`
	traceOther    = `8 09:00:00.000005 write(14<TCP:[127.0.0.1:1->127.0.0.1:3]>, "\x00\x00\x07\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x02\x08\x01", 16) = 16`
	traceSignal   = `8 09:00:00.000005 --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=7, si_uid=0} ---`
	traceMetaA    = `7 09:00:00.000003 pwrite64(5<\x2f\x73\x69\x74\x65\x2e\x64\x62>, "\x00\x00"..., 4096, 4096 <unfinished ...>`
	traceMetaB    = `7 09:00:00.000004 <... pwrite64 resumed>) = 4096`
	traceSyncA    = `7 09:00:00.000003 fdatasync(5<\x2f\x73\x69\x74\x65\x2e\x64\x62> <unfinished ...>`
	traceSyncB    = `7 09:00:00.000004 <... fdatasync resumed>) = 0`
	traceSyncGone = `7 09:00:00.000004 <... fdatasync resumed>) = ?`
)

func TestTraceChecker(t *testing.T) {
	tests := []struct {
		name    string
		lines   []string
		answers int
		want    string // part of the error; empty: none
	}{
		{"one commit, one answer", []string{tracePage, traceSync, traceMeta, traceSync, traceAnswer}, 1, ""},
		{"two of each", []string{
			tracePage, tracePage, traceSync, traceMeta, traceSync, traceAnswer, traceSignal,
			tracePage, traceSync, traceMeta, traceSync, traceAnswer,
		}, 2, ""},
		{"calls that others interrupt", []string{
			tracePage, traceSync, traceMetaA, tracePing, traceMetaB, traceSyncA, traceOther, traceSyncB, traceAnswer,
		}, 1, ""},
		{"what is no answer may leave at any time", []string{
			tracePing, tracePage, tracePing, traceSync, traceMeta, tracePing, traceSync, traceAnswer, tracePing,
		}, 1, ""},
		{"no answer at all", []string{tracePage, traceSync, traceMeta, traceSync, tracePing}, 0, "no answer"},
		{"the answer first", []string{traceAnswer, tracePage, traceSync, traceMeta, traceSync}, 0, `after ""`},
		{"no sync of the pages", []string{tracePage, traceMeta, traceSync, traceAnswer}, 0, `after "PMS"`},
		{"no sync of the meta page", []string{tracePage, traceSync, traceMeta, traceAnswer}, 0, `after "PSM"`},
		{"no meta page", []string{tracePage, traceSync, traceAnswer}, 0, `after "PS"`},
		{"no sync at all", []string{tracePage, traceMeta, traceAnswer}, 0, `after "PM"`},
		{"meta page before the pages", []string{traceMeta, traceSync, tracePage, traceSync, traceAnswer}, 0, `after "MSPS"`},
		{"the sync has failed", []string{tracePage, traceSync, traceMeta, traceSyncFail, traceAnswer}, 0, `after "PSMF"`},
		{"the sync is under way", []string{tracePage, traceSync, traceMeta, traceSyncA, traceAnswer, traceSyncB}, 0, "before the last sync"},
		{"the sync never ends", []string{tracePage, traceSync, traceMeta, traceSyncA, traceAnswer, traceSyncGone}, 0, "before the last sync"},
		{"the meta page is under way", []string{tracePage, traceSync, traceMetaA, strings.Replace(traceSync, "7", "9", 1), traceMetaB, traceAnswer}, 0, "has ended"},
		{"one commit for two answers", []string{tracePage, traceSync, traceMeta, traceSync, traceAnswer, traceAnswer}, 1, `after ""`},
		{"a second commit cut short", []string{
			tracePage, traceSync, traceMeta, traceSync, traceAnswer, tracePage, traceSync, traceAnswer,
		}, 1, `after "PS"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls, err := parseTrace(strings.Join(test.lines, "\n") + "\n")
			if err != nil {
				t.Fatal(err)
			}
			answers, err := checkAnswers(calls, "127.0.0.1:2")
			if answers != test.answers || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d answers, %v; want %d, error with %q", answers, err, test.answers, test.want)
			}
		})
	}
}

func TestTraceTellsOfAnswersAfterAFailure(t *testing.T) {
	tests := []struct {
		name    string
		lines   []string
		answers int
		failed  bool
	}{
		{"nothing fails", []string{tracePage, traceSync, traceAnswer}, 0, false},
		{"silence after the failure", []string{tracePage, traceSync, traceAnswer, traceSyncFail, tracePing}, 0, true},
		{"an answer after the failure", []string{tracePage, traceSyncFail, traceAnswer}, 1, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls, err := parseTrace(strings.Join(test.lines, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if answers, failed := answersAfterFailure(calls, "127.0.0.1:2"); answers != test.answers || failed != test.failed {
				t.Errorf("%d answers, failed %t; want %d, %t", answers, failed, test.answers, test.failed)
			}
		})
	}
}
