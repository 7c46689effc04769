package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/httpapi/httpapitest"
	"github.com/samya-db/samya/redistribute"
)

// shell runs command lines against a fake app manager.
type shell struct {
	t       *testing.T
	addr    string
	manager *httpapitest.Manager
	env     map[string]string
	stdin   string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	m := httpapitest.New()
	m.Create("acme/vm", 5000)
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return &shell{t: t, addr: server.URL, manager: m, env: map[string]string{"SAMYA_ADDR": server.URL}}
}

// run runs a command line.
func (s *shell) run(line string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, errs strings.Builder
	p := &program{
		stdin: strings.NewReader(s.stdin), stdout: &out, stderr: &errs,
		lookupEnv: func(key string) (string, bool) { v, ok := s.env[key]; return v, ok },
	}
	code = p.run(s.t.Context(), strings.Fields(line))
	return code, out.String(), errs.String()
}

// expect runs a command line and compares its exit status and its output: stdout if the
// status is 0, else stderr.
func (s *shell) expect(line string, code int, want string) {
	s.t.Helper()
	got, stdout, stderr := s.run(line)
	text := stdout
	if code != exitOK {
		text = stderr
		if stdout != "" {
			s.t.Errorf("samya %s: fails and prints %q", line, stdout)
		}
	}
	if got != code || text != want {
		s.t.Errorf("samya %s: exit status %d, want %d; got\n%s\nwant\n%s", line, got, code, text, want)
	}
}

func TestEntityCommands(t *testing.T) {
	s := newShell(t)
	s.expect("entity create acme/seats --limit 100", exitOK, "created acme/seats with limit 100\n")
	s.expect("entity create acme/seats --limit 100", exitFailed,
		"samya: create acme/seats: ENTITY_EXISTS: entity \"acme/seats\" exists\n  change its limit with: samya entity set-limit acme/seats N\n")
	s.expect("entity set-limit acme/seats 200", exitOK, "the limit of acme/seats is now 200 (version 2)\n")
	s.expect("entity set-limit acme/seats 200 --wait-applied", exitOK, "the limit of acme/seats is now 200 (version 3)\n")
	s.expect("entity set-limit acme/seats 300 --expected-version 1", exitFailed,
		"samya: change the limit of acme/seats: VERSION_MISMATCH: version 1 expected, it is 3\n"+
			"  somebody else changed it; read it again with: samya entity get acme/seats\n")
	s.expect("entity create zoo --limit 0", exitOK, "created zoo with limit 0\n")
	s.expect("entity list", exitOK, "NAME        LIMIT  VERSION\nacme/seats  200    3\nacme/vm     5000   1\nzoo         0      1\n")
	s.expect("entity list --prefix z", exitOK, "NAME  LIMIT  VERSION\nzoo   0      1\n")
	s.expect("entity delete zoo --yes", exitOK, "deleted zoo\n")
	s.expect("entity get zoo", exitNotFound,
		"samya: read zoo: ENTITY_NOT_FOUND: no entity \"zoo\"\n"+
			"  create it with: samya entity create zoo --limit N\n  or see which there are with: samya entity list\n")
}

// TestSetLimitWhereASiteIsMissing: the result says by how much the limit may be exceeded.
// With --wait-applied the command fails if not all sites have applied the change, and says how
// to wait further.
func TestSetLimitWhereASiteIsMissing(t *testing.T) {
	s := newShell(t)
	s.manager.Missing = []string{"as", "eu"}
	const changed = "the limit of acme/vm is now 10 (version 2)\nUntil all sites have heard of this limit, it may be exceeded by 7 at most.\n"
	s.expect("entity set-limit acme/vm 10", exitOK, changed)
	code, stdout, stderr := s.run("entity set-limit acme/vm 10 --wait-applied --request-id r --expected-version 2")
	if want := strings.Replace(changed, "version 2", "version 3", 1); code != exitFailed || stdout != want || stderr !=
		"samya: the limit of acme/vm is changed, but these sites are not known to have applied it: as, eu\n"+
			"  wait further with: samya entity set-limit acme/vm 10 --request-id r --expected-version 2 --wait-applied\n" {
		t.Errorf("exit status %d\n%s\n%s", code, stdout, stderr)
	}
	code, stdout, _ = s.run("entity set-limit acme/vm 10 --wait-applied --json")
	var told httpapi.Changed
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || code != exitFailed || told.MayExceedBy != 7 || !slices.Equal(told.MissingSites, s.manager.Missing) {
		t.Errorf("exit status %d, %v in %s", code, err, stdout)
	}
	s.expect("entity get acme/vm", exitOK, `NAME     LIMIT  AVAILABLE  ACQUIRED  IN TRANSIT  VERSION
acme/vm  10     10         0         0           4

SITE  LEFT  OFFERED  ACQUIRED  WAITING  REDISTRIBUTIONS  TRANSFERS  AGE
us    10    0        0         0        3                0          0s

Until all sites have heard of this limit, it may be exceeded by 7 at most.
`)
	if code, _, stderr := s.run("entity set-limit acme/vm 10 --request-id \x00"); code != exitUsage || !strings.Contains(stderr, "request-id") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

func TestEntityGet(t *testing.T) {
	s := newShell(t)
	s.expect("acquire acme/vm 30", exitOK, "acquired 30 of acme/vm at us; 4970 left there\n")
	s.expect("entity get acme/vm", exitOK, `NAME     LIMIT  AVAILABLE  ACQUIRED  IN TRANSIT  VERSION
acme/vm  5000   4970       30        0           1

SITE  LEFT  OFFERED  ACQUIRED  WAITING  REDISTRIBUTIONS  TRANSFERS  AGE
us    4970  0        30        0        3                0          0s
`)
	_, stdout, _ := s.run("entity get acme/vm --json")
	var status httpapi.Status
	if err := json.Unmarshal([]byte(stdout), &status); err != nil || status.Acquired != 30 || len(status.Shares) != 1 {
		t.Errorf("%v in %s", err, stdout)
	}
}

func TestEntityDeleteAsks(t *testing.T) {
	for answer, want := range map[string]struct {
		code int
		text string
	}{
		"y\n":   {exitOK, ""},
		"yes\n": {exitOK, ""},
		"\n":    {exitFailed, "nothing was deleted"},
		"no\n":  {exitFailed, "nothing was deleted"},
		"":      {exitFailed, "pass --yes"},
	} {
		s := newShell(t)
		s.stdin = answer
		code, _, stderr := s.run("entity delete acme/vm")
		if code != want.code || !strings.Contains(stderr, "Delete acme/vm?") || !strings.Contains(stderr, want.text) {
			t.Errorf("answer %q: exit status %d, want %d; %s", answer, code, want.code, stderr)
		}
		if deleted := slices.Contains(s.manager.Requests(), "DELETE /v1/entities/acme/vm"); deleted != (want.code == exitOK) {
			t.Errorf("answer %q: deleted is %t", answer, deleted)
		}
	}
}

func TestAcquireAndRelease(t *testing.T) {
	s := newShell(t)
	var seen httpapi.Request
	s.manager.Intercept = func(_ string, r httpapi.Request, execute func() error) error {
		seen = r
		return execute()
	}
	s.expect("acquire acme/vm 3 --wait 2s --request-id one --site us", exitOK, "acquired 3 of acme/vm at us; 4997 left there\n")
	if want := (httpapi.Request{Tokens: 3, RequestID: "one", Wait: "2s", Site: "us"}); !reflect.DeepEqual(seen, want) {
		t.Errorf("sent %+v, want %+v", seen, want)
	}
	s.expect("acquire acme/vm 3 --wait 2s --request-id one --site us", exitOK, "acquired 3 of acme/vm at us; 4997 left there\n")
	s.expect("release acme/vm 2", exitOK, "released 2 of acme/vm at us; 4999 left there\n")
	if seen.RequestID == "" || seen.Wait != "" {
		t.Errorf("sent %+v, want a made-up id and no wait", seen)
	}
	_, stdout, _ := s.run("acquire acme/vm 1 --json --request-id two")
	if want := "{\n  \"tokens\": 1,\n  \"request_id\": \"two\",\n  \"site\": \"us\",\n  \"left\": 4998\n}\n"; stdout != want {
		t.Errorf("got %s, want %s", stdout, want)
	}
	s.expect("acquire acme/vm 6000", exitOutOfTokens,
		"samya: acquire 6000 of acme/vm: OUT_OF_TOKENS: 6000 tokens of acme/vm wanted, 4998 left\n"+
			"  4998 tokens are left at site us; try again in 1.5s, ask for fewer, or wait longer with --wait\n")
}

func TestUnknownOutcomeTellsHowToFindOut(t *testing.T) {
	s := newShell(t)
	s.manager.Intercept = func(_ string, r httpapi.Request, _ func() error) error {
		return apierr.Unknown(r.RequestID, "eu", nil)
	}
	code, _, stderr := s.run("release acme/vm 2 --request-id one")
	if code != exitUnknown || !strings.Contains(stderr, "samya release acme/vm 2 --request-id one --site eu") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	// The connection breaks: nobody knows which site has it.
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer broken.Close()
	code, _, stderr = s.run("acquire acme/vm 2 --request-id one --addr " + broken.URL)
	if code != exitUnknown || !strings.Contains(stderr, "samya entity get acme/vm") || !strings.Contains(stderr, "one") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	// A repeat under another id could meet the entity made by the first create.
	for flags, want := range map[string]string{"": "--request-id ", " --request-id two --parent acme": "--parent acme --request-id two\n"} {
		code, _, stderr = s.run("entity create acme/new --limit 5" + flags + " --addr " + broken.URL)
		if code != exitUnknown || !strings.Contains(stderr, "find out with: samya entity create acme/new --limit 5 "+want) {
			t.Errorf("exit status %d: %s", code, stderr)
		}
	}
	code, _, stderr = s.run("acquire acme/vm 2 --request-id one --site us --addr " + broken.URL)
	if code != exitUnknown || !strings.Contains(stderr, "samya acquire acme/vm 2 --request-id one --site us") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

func TestSites(t *testing.T) {
	newShell(t).expect("sites", exitOK, ""+
		"SITE  REGION   HEALTH       ROUND TRIP  SPEAKS  ADDRESS\n"+
		"eu    eu-west  unreachable  -           3 to 4  127.0.0.1:7002\n"+
		"us    us-east  serving      0.2 ms      1 to 2  127.0.0.1:7001\n"+
		"\neu is refused: the build of site eu is too new\ncluster demo, as seen by am-us\n")
}

func TestMode(t *testing.T) {
	s := newShell(t)
	s.expect("mode", exitOK, ""+
		"no mode was decided; each site goes by its own --protocol\n\n"+
		"SITE  IN FORCE  VERSION  --protocol\n"+
		"eu    ?         ?        ?\n"+
		"us    majority  0        majority\n"+
		"\nNot every site answered.\n")
	s.expect("mode set auto", exitOK, "the mode is now auto (version 1)\n")
	s.expect("mode set star --expected-version 1 --json", exitOK, "{\n  \"protocol\": \"star\",\n  \"version\": 2\n}\n")
	s.expect("mode set auto --expected-version 1", exitFailed,
		"samya: change the mode: VERSION_MISMATCH: version 1 expected, it is 2\n"+
			"  somebody else changed it; read it again with: samya mode\n")
	s.expect("mode set paxos", exitUsage, "samya: mode: must be one of auto, majority, star\n  see samya mode set --help\n")
	code, stdout, _ := s.run("mode --json")
	var got httpapi.ModeStatus
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
		t.Fatalf("exit status %d, %v: %s", code, err, stdout)
	}
	if got.Protocol != "star" || got.Version != 2 || len(got.Sites) != 2 || got.Sites[1].Protocol != "star" {
		t.Errorf("%+v", got)
	}
}

func TestClusterVersion(t *testing.T) {
	s := newShell(t)
	s.expect("cluster version", exitOK, ""+
		"the cluster is of version 1\n\n"+
		"SITE  KNOWS  SPEAKS  BUILD\n"+
		"eu    1      1       samya v1\n"+
		"us    1      1 to 2  samya v2\n"+
		"\nVersion 2 waits for another build at: eu.\n")
	s.expect("cluster version --raise", exitFailed,
		"samya: raise the version: VERSION_MISMATCH: the cluster stays at version 1: site eu has a build that speaks version 1 alone\n"+
			"  see what each site knows and speaks with: samya cluster version\n")
	s.manager.EUBuild = 2
	s.expect("cluster version", exitOK, ""+
		"the cluster is of version 1\n\n"+
		"SITE  KNOWS  SPEAKS  BUILD\n"+
		"eu    1      1 to 2  samya v1\n"+
		"us    1      1 to 2  samya v2\n"+
		"\nAll sites speak version 2: raise it with --raise. No site can go back afterwards.\n")
	s.expect("cluster version --raise --json", exitOK, "{\n  \"version\": 2\n}\n")
	s.expect("cluster version --raise", exitOK, "the cluster is of version 2, and no site has a build of a later one\n")
	code, stdout, _ := s.run("cluster version --json")
	var got httpapi.VersionStatus
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || got.Version.Version != 2 || len(got.Sites) != 2 || !got.Complete {
		t.Errorf("exit status %d, %v: %s", code, err, stdout)
	}
	if _, stdout, _ = s.run("cluster version"); !strings.HasSuffix(stdout, "\nNo site has a build of a later version.\n") {
		t.Errorf("%s", stdout)
	}
}

func TestForecast(t *testing.T) {
	s := newShell(t)
	s.expect("forecast", exitOK, ""+
		"SITE  IN FORCE  --forecast\n"+
		"eu    ?         ?\n"+
		"us    auto"+"      auto\n"+
		"\nNot every site answered.\n")
	code, stdout, stderr := s.run("forecast set mean-rate")
	if code != exitFailed || !strings.Contains(stdout, "us    mean-rate  auto\n") ||
		stderr != "samya: change the model: not every site has changed: eu: site \"eu\" cannot be reached; nothing was done\n"+
			"  repeat the command; the sites that have changed stay as they are\n" {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	s.expect("forecast set none", exitOK, "SITE  IN FORCE  --forecast\neu    none      auto\nus    none      auto\n")
	code, stdout, _ = s.run("forecast --json")
	var got httpapi.ForecastStatus
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || !got.Complete || len(got.Sites) != 2 || got.Sites[0].Model != "none" {
		t.Errorf("exit status %d, %v: %s", code, err, stdout)
	}
	code, _, stderr = s.run("forecast set oracle")
	if code != exitUsage || !strings.HasPrefix(stderr, "samya: model: must be one of ar, ar-lad,") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	s := newShell(t)
	foreign := httptest.NewServer(http.NotFoundHandler())
	defer foreign.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	s.manager.Intercept = func(string, httpapi.Request, func() error) error {
		return apierr.New(apierr.SiteUnavailable, "no site answers")
	}
	tests := map[string]struct {
		line string
		code int
		want string
	}{
		"nobody there":      {"sites --addr " + gone.URL, exitUnreachable, "no app manager answers at " + gone.URL},
		"somebody else":     {"sites --addr " + foreign.URL, exitFailed, "--addr must be the HTTP address of an app manager"},
		"no site":           {"acquire acme/vm 1", exitUnreachable, "nothing was done"},
		"bad address":       {"sites --addr http://x/y", exitUsage, "nothing may follow the port"},
		"bad name":          {"entity get a//b", exitUsage, "name: empty segment"},
		"no tokens":         {"acquire acme/vm 0", exitUsage, "tokens: 0, at least 1"},
		"nobody at a site":  {"site inspect --site " + strings.TrimPrefix(gone.URL, "http://"), exitUnreachable, "no site answers at " + strings.TrimPrefix(gone.URL, "http://")},
		"a silent site":     {"site inspect --site eu", exitUnreachable, `site "eu" cannot be reached`},
		"bad site":          {"site inspect --site US", exitUsage, "site: 'U' at position 1"},
		"bad time":          {"site inspect --over -1s", exitUsage, "over: -1s, must not be below 0s"},
		"no such part":      {"site list", exitUsage, "1 argument, want no arguments"},
		"no number":         {"acquire acme/vm many", exitUsage, `tokens: "many" is not a whole number`},
		"long wait":         {"acquire acme/vm 1 --wait 2m", exitUsage, "at most 60s"},
		"bad limit":         {"entity create a --limit -1", exitUsage, "limit: -1, at least 0"},
		"no limit":          {"entity create a", exitUsage, "limit: pass either --limit or --rate"},
		"limit and rate":    {"entity create a --limit 1 --rate 1/s", exitUsage, "limit: pass either --limit or --rate"},
		"no period":         {"entity create a --rate 100", exitUsage, "rate: must be tokens and a period"},
		"rate of none":      {"entity create a --rate x/day", exitUsage, "rate: must begin with a number of tokens"},
		"odd period":        {"entity create a --rate 100/week", exitUsage, "per: must be a number and a unit"},
		"zone of hours":     {"entity create a --rate 100/h --time-zone Asia/Tokyo", exitUsage, "time_zone: is for windows of days and months"},
		"missing argument":  {"acquire acme/vm", exitUsage, "1 argument, want NAME N"},
		"unknown command":   {"entity make a", exitUsage, "samya entity --help"},
		"unknown flag":      {"sites --all", exitUsage, "--all"},
		"bad output":        {"sites -o json", exitUsage, "--output is --json now"},
		"bad demo":          {"demo --load 0", exitUsage, "load: 0, must be above 0"},
		"bad workload":      {"demo --workload forest", exitUsage, `workload: "forest", must be one of entity, hierarchy`},
		"entity of a tree":  {"demo --workload hierarchy --entity acme", exitUsage, "entity: the workload hierarchy has entities of its own"},
		"site without name": {"site --data x --members us", exitUsage, "name: empty"},
		"bad policy":        {"site --name us --data x --members us --policy y", exitUsage, "policy: \"y\", must be one of " + strings.Join(redistribute.Names(), ", ")},
		"bad preset":        {"appmgr --name am --preset moon", exitUsage, "preset"},
		"bad log format":    {"appmgr --name am --log-format xml", exitUsage, "log-format"},
		"bad log level":     {"site --name us --log-level loud", exitUsage, "log-level"},
		"no matrix":         {"site --name us --latency /no/such/file", exitUsage, "/no/such/file"},
		"no key":            {"site --name us --gossip-key-file /no/such/file", exitFailed, "/no/such/file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := s.run(test.line)
			if code != test.code || !strings.Contains(stderr, test.want) || stdout != "" {
				t.Errorf("samya %s: exit status %d, want %d; %q does not say %q (stdout %q)", test.line, code, test.code, stderr, test.want, stdout)
			}
		})
	}
}

func TestInterruptedRequest(t *testing.T) {
	var errs strings.Builder
	entered := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-entered
		cancel(errInterrupted)
	}()
	p := &program{stdin: strings.NewReader(""), stdout: &errs, stderr: &errs, lookupEnv: func(string) (string, bool) { return "", false }}
	if code := p.run(ctx, []string{"sites", "--addr", server.URL}); code != exitInterrupted {
		t.Errorf("exit status %d: %s", code, errs.String())
	}
}

func TestEnvironment(t *testing.T) {
	s := newShell(t)
	s.env["SAMYA_JSON"] = "true"
	if _, stdout, _ := s.run("sites"); !strings.HasPrefix(stdout, "{") {
		t.Errorf("SAMYA_JSON does nothing: %s", stdout)
	}
	if _, stdout, _ := s.run("sites --json=false"); !strings.HasPrefix(stdout, "SITE") {
		t.Errorf("the flag does not go before the environment: %s", stdout)
	}
	s.env["SAMYA_LIMIT"] = "7"
	s.env["SAMYA_JSON"] = ""
	s.expect("entity create a", exitOK, "created a with limit 7\n")
	s.env["SAMYA_LIMIT"] = "x"
	if code, _, stderr := s.run("entity create b"); code != exitUsage || !strings.Contains(stderr, "SAMYA_LIMIT") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

func TestCompletion(t *testing.T) {
	s := newShell(t)
	s.manager.Create("acme/seats", 1)
	for line, want := range map[string]string{
		"__complete member drain e":           "eu\n:4\n",
		"__complete member drain eu --heir u": "us\n:4\n",
		"__complete member remove eu u":       ":4\n",
		"__complete entity get acme/v":        "acme/vm\n:4\n",
		"__complete acquire acme/":            "acme/seats\nacme/vm\n:4\n",
		"__complete site --policy p":          strings.Join(redistribute.Names(), "\n") + "\n:4\n",
		"__complete acquire acme/vm 3":        ":4\n",
		"__complete entity set-limit a":       "acme/seats\nacme/vm\n:4\n",
		"__complete appmgr --latency s":       "none\nsamya\n:0\n",
		"__complete entity delete acme/sea":   "acme/seats\n:4\n",
	} {
		if _, stdout, _ := s.run(line); stdout != want {
			t.Errorf("samya %s: got %q, want %q", line, stdout, want)
		}
	}
	if code, stdout, _ := s.run("completion bash"); code != exitOK || !strings.Contains(stdout, "samya") {
		t.Errorf("completion bash: exit status %d, %d bytes", code, len(stdout))
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	s := newShell(t)
	for _, line := range []string{"", "version", "entity", "--help", "site --help", "appmgr --help", "demo --help", "entity create --help", "site inspect --help", "acquire --help"} {
		if code, stdout, stderr := s.run(line); code != exitOK || stdout == "" || stderr != "" {
			t.Errorf("samya %s: exit status %d, %q, %q", line, code, stdout, stderr)
		}
	}
}

// TestVersionFlag: --version prints the output of `samya version`.
func TestVersionFlag(t *testing.T) {
	s := newShell(t)
	_, want, _ := s.run("version")
	if code, got, stderr := s.run("--version"); code != exitOK || got != want || want == "" {
		t.Errorf("exit status %d, %q, %q, want %q", code, got, stderr, want)
	}
}
