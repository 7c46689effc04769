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

// systemCall is a system call of a trace. ended is 0 if the trace does not show the end
// of the call.
type systemCall struct {
	name string
	// file is the target of the first argument's descriptor, as strace -yy shows it: a
	// path, or TCP:[local->remote]. For a call on names, file is the last path in its
	// arguments.
	file string
	// data is the start of the written bytes.
	data []byte
	// offset is the offset of a pwrite64.
	offset int64
	// failed is set if the call returned an error.
	failed bool
	// began and ended are the numbers of the lines that show the call's begin and end.
	// strace stops a thread at either, so causes come before their effects.
	began, ended int
}

var (
	traceLine   = regexp.MustCompile(`^(\d+) +(?:\d\d:\d\d:\d\d\.\d+ )?(.*)$`)
	traceBegin  = regexp.MustCompile(`^(\w+)\((\d+)<((?:->|[^>])*)>(.*)$`)
	traceNames  = regexp.MustCompile(`^(rename\w*|unlink\w*)\(.*"([^"]*)"(.*)$`)
	traceResume = regexp.MustCompile(`^<\.\.\. (\w+) resumed>(.*)$`)
	traceData   = regexp.MustCompile(`^, "((?:\\x[0-9a-f]{2})*)"`)
	traceOffset = regexp.MustCompile(`, (\d+)(?:\)| <unfinished)`)
	traceReturn = regexp.MustCompile(`\) += (-?\d+|\?)`)
)

// parseTrace reads the output of strace -f -tt -yy -xx for pwrite64, fdatasync, fsync,
// the calls that change names and the calls that write to sockets.
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
		c := systemCall{began: number}
		b := traceBegin.FindStringSubmatch(rest)
		switch n := traceNames.FindStringSubmatch(rest); {
		case n != nil:
			c.name, c.file, b = n[1], unhex(n[2]), []string{4: n[3]}
		case b != nil:
			c.name, c.file = b[1], unhex(b[3])
		default:
			continue // a signal, an end, or a call on something that is closed
		}
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

// carriesAnswer reports whether the call writes an HTTP/2 DATA frame to the client. Every
// answer except a refusal comes in such a frame.
func (c *systemCall) carriesAnswer(client string) bool {
	if !strings.HasSuffix(c.file, "->"+client+"]") {
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

// metaEnd is the end of the two meta pages, the first pages of the database. A write of a
// meta page makes a transaction count.
const metaEnd = 2 * 4096

// isLog tells whether a call is on a segment of the log.
func (c *systemCall) isLog() bool { return strings.Contains(c.file, "/journal-") }

// isBase tells whether a call is on the database that the log is carried over to.
func (c *systemCall) isBase() bool { return strings.Contains(c.file, "/site.db") }

// onLog leaves out the calls on anything but the log.
func onLog(calls []systemCall) []systemCall { return only(calls, (*systemCall).isLog) }

// onData leaves out the calls on anything but the log, the database, and the
// directory in which they stand.
func onData(calls []systemCall) []systemCall {
	return only(calls, func(c *systemCall) bool { return c.isLog() || c.isBase() || c.name == "fsync" })
}

func only(calls []systemCall, want func(*systemCall) bool) []systemCall {
	var list []systemCall
	for i := range calls {
		if want(&calls[i]) {
			list = append(list, calls[i])
		}
	}
	return list
}

// letters spells calls on the log: W a write, S a sync, F a sync that failed.
// Calls must not overlap.
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
		default:
			word.WriteByte('W')
		}
	}
	return word.String(), nil
}

// commits matches the calls on the log between two answers: writes and a sync, once or
// more.
var commits = regexp.MustCompile(`^(W+S)+$`)

// checkAnswers checks a trace of a site with a single client, who sends requests in
// sequence: before each answer leaves, a commit of its own was written and synced in
// whole. The next commit, of the site's own actions, may have begun by then. checkAnswers
// returns the number of answers.
func checkAnswers(calls []systemCall, client string) (answers int, err error) {
	var since []systemCall
	for _, c := range calls {
		switch {
		case c.isLog():
			since = append(since, c)
		case c.carriesAnswer(client):
			synced := len(since)
			for synced > 0 && (since[synced-1].name != "fdatasync" || since[synced-1].ended == 0 || since[synced-1].ended > c.began) {
				synced--
			}
			word, err := letters(since[:synced])
			switch {
			case err != nil:
				return answers, err
			case !commits.MatchString(word):
				return answers, fmt.Errorf("line %d: an answer leaves after %q on the log, want %s", c.began, word, commits)
			}
			answers++
			since = since[synced:]
		}
	}
	if answers == 0 {
		return 0, errors.New("no answer was seen")
	}
	return answers, nil
}

// answersAfterFailure counts the answers that leave after a failed write or sync. failed
// reports whether there was such a failure.
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
	traceWrite    = `7 09:00:00.000001 pwrite64(5<\x2f\x6a\x6f\x75\x72\x6e\x61\x6c\x2d\x31>, "\x03\x00"..., 320, 12288) = 320`
	traceSync     = `7 09:00:00.000002 fdatasync(5<\x2f\x6a\x6f\x75\x72\x6e\x61\x6c\x2d\x31>) = 0`
	traceSyncFail = `7 09:00:00.000002 fdatasync(5<\x2f\x6a\x6f\x75\x72\x6e\x61\x6c\x2d\x31>) = -1 EIO (Input/output error) (INJECTED)`
	tracePage     = `7 09:00:00.000003 pwrite64(6<\x2f\x73\x69\x74\x65\x2e\x64\x62>, "\x03\x00"..., 4096, 12288) = 4096`
	tracePageSync = `7 09:00:00.000003 fdatasync(6<\x2f\x73\x69\x74\x65\x2e\x64\x62>) = 0`
	traceMeta     = `7 09:00:00.000003 pwrite64(6<\x2f\x73\x69\x74\x65\x2e\x64\x62>, "\x00\x00"..., 4096, 4096) = 4096`
	traceRename   = `7 09:00:00.000003 renameat(AT_FDCWD</d>, "/d/journal-1", AT_FDCWD</d>, "/d/journal-spare") = 0`
	traceUnlink   = `7 09:00:00.000003 unlinkat(AT_FDCWD</d>, "/d/journal-1", 0) = 0`
	traceDir      = `7 09:00:00.000003 fsync(9</d>) = 0`
	tracePing     = `8 09:00:00.000004 write(13<TCP:[127.0.0.1:1->127.0.0.1:2]>, "\x00\x00\x08\x06\x01\x00\x00\x00\x00\x02\x04\x10\x10\x09\x0e\x07\x07", 17) = 17`
	traceAnswer   = `8 09:00:00.000005 write(13<TCP:[127.0.0.1:1->127.0.0.1:2]>, "\x00\x00\x02\x01\x04\x00\x00\x00\x07\x88\xc0\x00\x00\x07\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x02\x08\x01", 27) = 27`
	traceOther    = `8 09:00:00.000005 write(14<TCP:[127.0.0.1:1->127.0.0.1:3]>, "\x00\x00\x07\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x02\x08\x01", 16) = 16`
	traceSignal   = `8 09:00:00.000005 --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=7, si_uid=0} ---`
	traceWriteA   = `7 09:00:00.000003 pwrite64(5<\x2f\x6a\x6f\x75\x72\x6e\x61\x6c\x2d\x31>, "\x00\x00"..., 320, 12288 <unfinished ...>`
	traceWriteB   = `7 09:00:00.000004 <... pwrite64 resumed>) = 320`
	traceSyncA    = `7 09:00:00.000003 fdatasync(5<\x2f\x6a\x6f\x75\x72\x6e\x61\x6c\x2d\x31> <unfinished ...>`
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
		{"one commit, one answer", []string{traceWrite, traceSync, traceAnswer}, 1, ""},
		{"two of each", []string{
			traceWrite, traceWrite, traceSync, traceAnswer, traceSignal, traceWrite, traceSync, traceAnswer,
		}, 2, ""},
		{"calls that others interrupt", []string{
			traceWriteA, tracePing, traceWriteB, traceSyncA, traceOther, traceSyncB, traceAnswer,
		}, 1, ""},
		{"what is no answer may leave at any time", []string{
			tracePing, traceWrite, tracePing, traceSync, tracePing, traceAnswer, tracePing,
		}, 1, ""},
		{"a checkpoint meanwhile", []string{
			traceWriteA, strings.Replace(tracePage, "7", "9", 1), traceWriteB, traceMeta, traceSync, traceAnswer,
		}, 1, ""},
		{"the next commit has begun", []string{
			traceWrite, traceSync, traceWrite, traceAnswer, traceSync, traceAnswer,
		}, 2, ""},
		{"no answer at all", []string{traceWrite, traceSync, tracePing}, 0, "no answer"},
		{"the answer first", []string{traceAnswer, traceWrite, traceSync}, 0, `after ""`},
		{"no sync", []string{traceWrite, traceAnswer}, 0, `after ""`},
		{"no write", []string{traceSync, traceAnswer}, 0, `after "S"`},
		{"a checkpoint alone", []string{tracePage, tracePageSync, traceMeta, tracePageSync, traceAnswer}, 0, `after ""`},
		{"written after the sync", []string{traceSync, traceWrite, traceAnswer}, 0, `after "S"`},
		{"the sync has failed", []string{traceWrite, traceSyncFail, traceAnswer}, 0, `after "WF"`},
		{"the sync is under way", []string{traceWrite, traceSyncA, traceAnswer, traceSyncB}, 0, `after ""`},
		{"the sync never ends", []string{traceWrite, traceSyncA, traceAnswer, traceSyncGone}, 0, `after ""`},
		{"the write is under way", []string{traceWriteA, strings.Replace(traceSync, "7", "9", 1), traceWriteB, traceAnswer}, 0, "has ended"},
		{"one commit for two answers", []string{traceWrite, traceSync, traceAnswer, traceAnswer}, 1, `after ""`},
		{"a second commit cut short", []string{traceWrite, traceSync, traceAnswer, traceWrite, traceAnswer}, 1, `after ""`},
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
		{"nothing fails", []string{traceWrite, traceSync, traceAnswer}, 0, false},
		{"silence after the failure", []string{traceWrite, traceSync, traceAnswer, traceSyncFail, tracePing}, 0, true},
		{"an answer after the failure", []string{traceWrite, traceSyncFail, traceAnswer}, 1, true},
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
