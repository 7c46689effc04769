package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/docs"
)

var began = time.Unix(1_700_000_000, 0)

func site(name string, metrics ...Sample) Observation {
	return Observation{Process: Process{Job: JobSite, Name: name, Region: name, Instance: name + ":7101", State: Answers}, Metrics: metrics}
}

func inState(o Observation, s State, problem string) Observation {
	o.State, o.Problem = s, problem
	return o
}

func ids(r *Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.ID)
	}
	return all
}

// two returns two looks, five seconds apart, at the same processes.
func two(all ...Observation) []Look {
	return []Look{{At: began, Cluster: "prod", Observations: all}, {At: began.Add(5 * time.Second), Cluster: "prod", Observations: all}}
}

// TestStates: a process that is silent is down, and a process that refuses is not: its
// metrics are unread. If nobody answers, nothing is known.
func TestStates(t *testing.T) {
	us, eu, as := site("us"), site("eu"), site("as")
	am := Observation{Process: Process{Job: JobAppMgr, Name: "am", Instance: "am:8080", Region: "us", State: Answers}}
	for title, tc := range map[string]struct {
		seen    []Observation
		want    []string
		verdict string
	}{
		"all answer":     {[]Observation{am, us, eu, as}, nil, healthy},
		"a silent site":  {[]Observation{am, us, inState(eu, Silent, "refused"), as}, []string{"SamyaSiteDown"}, "critical"},
		"a refusal":      {[]Observation{am, us, inState(eu, Refuses, "403"), as}, []string{MetricsUnread}, "warning"},
		"an unknown":     {[]Observation{am, us, inState(eu, Unknown, "no address"), as}, []string{MetricsUnread}, "warning"},
		"no app manager": {[]Observation{inState(am, Silent, "refused"), us, eu, as}, []string{"SamyaAppManagerDown"}, "warning"},
		"no majority": {
			[]Observation{am, us, inState(eu, Silent, ""), inState(as, Silent, "")},
			[]string{"SamyaNoMajority", "SamyaSiteDown", "SamyaSiteDown"},
			"critical",
		},
		"nobody": {[]Observation{inState(am, Silent, "refused")}, []string{ClusterUnreachable, "SamyaAppManagerDown"}, "critical"},
	} {
		r := diagnose(t, two(tc.seen...))
		if got := ids(&r); !slices.Equal(got, tc.want) || r.Verdict != tc.verdict {
			t.Errorf("%s: %v, %s, want %v, %s", title, got, r.Verdict, tc.want, tc.verdict)
		}
	}
}

// TestEveryLook: a condition that does not hold at every look is not found, unless it has
// held for as long as the alert waits.
func TestEveryLook(t *testing.T) {
	up, down := site("us"), inState(site("us"), Silent, "")
	for title, tc := range map[string]struct {
		states []Observation
		every  time.Duration
		want   bool
	}{
		"down at every look":    {[]Observation{down, down, down}, time.Second, true},
		"down at last":          {[]Observation{up, down, down}, time.Second, false},
		"down before":           {[]Observation{down, down, up}, time.Second, false},
		"down for long enough":  {[]Observation{up, down, down}, 2 * time.Minute, true},
		"down in between again": {[]Observation{down, up, down}, 2 * time.Minute, false},
	} {
		var looks []Look
		for i, o := range tc.states {
			looks = append(looks, Look{At: began.Add(time.Duration(i) * tc.every), Cluster: "prod", Observations: []Observation{o, site("eu"), site("as")}})
		}
		r := diagnose(t, looks)
		if got := slices.Contains(ids(&r), "SamyaSiteDown"); got != tc.want {
			t.Errorf("%s: found is %v", title, got)
		}
	}
}

// TestBirth: an increase before the first look is found if the process was started within
// the range, and not if it is older.
func TestBirth(t *testing.T) {
	for _, age := range []time.Duration{30 * time.Minute, 2 * time.Hour} {
		faulty := site("us", Sample{startTime, nil, float64(began.Add(-age).Unix())}, Sample{"samya_site_protocol_faults_total", nil, 3})
		r := diagnose(t, two(faulty))
		want := age < time.Hour
		if got := slices.Contains(ids(&r), "SamyaProtocolFault"); got != want {
			t.Errorf("started %s ago: found is %v", age, got)
		}
	}
}

// TestJudged: a report tells for how long each rule was judged, and which rules were not.
func TestJudged(t *testing.T) {
	r := diagnose(t, two(site("us", Sample{"samya_site_log_bytes", nil, 1})))
	judged := make(map[string]Judged)
	for _, j := range r.Rules {
		judged[j.ID] = j
	}
	if j := judged["SamyaLogGrows"]; !j.Judged || j.NeedsSeconds != 600 || j.JudgedSeconds != 5 {
		t.Errorf("%+v", j)
	}
	if j := judged["SamyaRefusals"]; j.Judged {
		t.Errorf("%+v, and nothing tells of requests", j)
	}
	one := diagnose(t, two(site("us", Sample{"samya_site_protocol_faults_total", nil, 0}))[:1])
	for _, j := range one.Rules {
		if j.ID == "SamyaProtocolFault" && j.Judged {
			t.Error("an increase is judged by a single look")
		}
	}
}

// TestEachRunbookIsAFinding: every finding has a section with what it means and what to
// do, and every section is a finding.
func TestEachRunbookIsAFinding(t *testing.T) {
	var sections []string
	for line := range strings.Lines(docs.Runbooks) {
		if name, ok := strings.CutPrefix(line, "## Samya"); ok {
			sections = append(sections, "Samya"+strings.TrimSpace(name))
		}
	}
	slices.Sort(sections)
	if all := IDs(); !slices.Equal(sections, all) {
		t.Errorf("runbooks %v\nfindings %v", sections, all)
	}
	for _, id := range IDs() {
		if b := runbooks[id]; b.means == "" || b.do == "" {
			t.Errorf("%s: means %q, do %q", id, b.means, b.do)
		}
		if f := found(id, "", "", nil); strings.ContainsAny(f.Do+f.Means, "*`[]") {
			t.Errorf("%s has marks of Markdown: %s %s", id, f.Means, f.Do)
		}
	}
}

// TestArrange: findings are sorted and told once, and at most 20 of an id.
func TestArrange(t *testing.T) {
	var all []Finding
	for i := range 25 {
		all = append(all, found(DiskSpace, "", "", map[string]string{"directory": fmt.Sprint(i)}))
	}
	all = append(all, found(LogTorn, "", "", nil), found(LogDamaged, "", "b", nil), found(LogDamaged, "", "a", nil), found(LogDamaged, "", "b", nil))
	var r Report
	r.complete(all)
	if len(r.Findings) != 23 || r.LeftOff != 5 || r.Verdict != "critical" {
		t.Fatalf("%d findings, %d left off, %s", len(r.Findings), r.LeftOff, r.Verdict)
	}
	if f := r.Findings; f[0].Where != "a" || f[1].Where != "b" || f[2].ID != DiskSpace || f[22].ID != LogTorn {
		t.Errorf("%v", ids(&r))
	}
	r.complete(all[25:26])
	if r.Verdict != healthy || len(r.Findings) != 1 {
		t.Errorf("a notice: %s, %d findings", r.Verdict, len(r.Findings))
	}
}

// TestReportAsText: the first line is the answer, and lines are as long as they may be.
func TestReportAsText(t *testing.T) {
	looks := two(site("us"), inState(site("eu"), Silent, "connection refused"), site("as", Sample{"samya_site_surplus_tokens", nil, 7}))
	r := diagnose(t, looks)
	var b bytes.Buffer
	if err := r.Write(&b, 72); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, says := range []string{
		"2 findings: 1 critical, 1 warning (cluster prod, 3 processes, looked for 5s)\n\nCRITICAL SamyaSiteDown The site eu:7101 in eu is down.\n",
		"\n  about   cluster prod, instance eu:7101, job samya-site, name eu,\n          region eu\n",
		"\n  seen    0; the rule is == 0\n",
		"\n  means   Its tokens cannot be granted by others until it is back.\n",
		"\n  where   connection refused\n", "\n  do      Read its log. Usual causes: address already in use, a full\n          disk, missing memory.",
		"\n  see     https://github.com/samya-db/samya/blob/main/docs/runbooks.md#samyasitedown\n",
		"\nWARNING SamyaSurplus 7 tokens were released that were never acquired, as\n  as:7101 knows.\n",
		"--watch-for 5m judges all in full.",
		"\nNot judged, as no process tells what they are about: ",
	} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
	for line := range strings.Lines(text) {
		if len(line) > 73 && strings.Contains(strings.TrimSpace(line[10:]), " ") && !strings.Contains(line, "findings") {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}

// TestReportAsJSON: the names of the fields are part of the interface of scripts.
func TestReportAsJSON(t *testing.T) {
	r := diagnose(t, two(site("us", Sample{"samya_site_surplus_tokens", nil, 7})))
	r.Rules = r.Rules[:1]
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"verdict":"warning","cluster":"prod","looks":2,"looked_seconds":5,` +
		`"processes":[{"job":"samya-site","name":"us","region":"us","instance":"us:7101","state":"answers"}],` +
		`"findings":[{"id":"SamyaSurplus","severity":"warning",` +
		`"labels":{"cluster":"prod","instance":"us:7101","job":"samya-site","name":"us","region":"us"},` +
		`"summary":"7 tokens were released that were never acquired, as us:7101 knows.","means":"They are kept out of circulation.",` +
		`"do":"Find the entity in the site's log, then the client. Leases exclude this mistake.",` +
		`"runbook":"https://github.com/samya-db/samya/blob/main/docs/runbooks.md#samyasurplus","value":7,"bound":"\u003e 0"}],"left_off":0,` +
		`"rules":[{"id":"SamyaNoMajority","needs_seconds":60,"judged_seconds":5,"judged":true}]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	b, err = json.Marshal(diagnose(t, two(site("us"))))
	if err != nil || !strings.Contains(string(b), `"findings":[],"left_off":0`) {
		t.Errorf("%v: %s", err, b)
	}
}

// TestTexts: the functions of the texts of alerts, as Prometheus has them.
func TestTexts(t *testing.T) {
	for want, got := range map[string]string{
		"3.5M": prefixed(3.5e6, 1000, "", "k", "M"), "0": prefixed(0, 1000, ""), "12.5m": prefixed(.0125, 1000, ""),
		"300Mi": prefixed(300<<20, 1024, "", "ki", "Mi"), "1.5": prefixed(1.5, 1000, "", "k"), "-2k": prefixed(-2000, 1000, "", "k"),
		"13d 23h 59m 0s": humanDuration(1209540), "199ms": humanDuration(.199), "59.5s": humanDuration(59.5), "2h 0m 1s": humanDuration(7201),
		"-1m 5s": humanDuration(-65), "0s": humanDuration(0),
		"1h": span(time.Hour), "5m": span(5 * time.Minute), "1m30s": span(90 * time.Second), "1h0m5s": span(3605 * time.Second),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReadRules: a rule that the doctor cannot judge is refused by its name.
func TestReadRules(t *testing.T) {
	for rule, says := range map[string]string{
		"avg_over_time(samya_site_waiting[5m]) > 1": "rule X: expression: the function avg_over_time is not known",
		"samya_site_waiting >":                      "rule X: expression: it ends",
	} {
		_, _, err := readRules([]byte("groups: [{rules: [{alert: X, expr: '"+rule+"'}]}]"), nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", rule, err)
		}
	}
	for file, says := range map[string]string{
		"groups: 1": "reading the rules",
		"groups: [{rules: [{alert: X, expr: up, annotations: {summary: '{{ $value | shout }}'}}]}]": "rule X",
	} {
		if _, _, err := readRules([]byte(file), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, _, err := readRules(nil, []byte("groups: [{rules: [{record: a:b, expr: 'sum('}]}]")); err == nil {
		t.Error("a recording rule of no meaning is taken")
	}
}
