package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// files reads files of testdata.
func files(t *testing.T, names ...string) []rules.File {
	t.Helper()
	var all []rules.File
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join("testdata", n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rules.File{Name: n, Data: b})
	}
	return all
}

// parsed parses files of testdata.
func parsed(t *testing.T, names ...string) *rules.Config {
	t.Helper()
	c, err := rules.Parse(files(t, names...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// descriptor reads "key=value,key=value".
func descriptor(text string) (d rules.Descriptor) {
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		d.Entries = append(d.Entries, rules.Entry{Key: key, Value: value})
	}
	return d
}

// counter counts requests in a single window, as the README of envoyproxy/ratelimit tells
// it: a request is over the limit if any of its rules is.
type counter map[string]int64

func (c counter) pass(all []*rules.Match) bool {
	passes := true
	for _, m := range all {
		if m == nil || m.Unlimited {
			continue
		}
		if c[m.Entity]++; c[m.Entity] > m.Limit && !m.Shadow {
			passes = false
		}
	}
	return passes
}

// step is so many equal requests, and how many of them pass.
type step struct {
	request string // descriptors, with a semicolon between them
	times   int
	pass    int
	metric  string // of the first descriptor's rule, if told
}

// TestReadme: the examples of the README of envoyproxy/ratelimit, with the decisions and
// the metrics that it tells.
func TestReadme(t *testing.T) {
	for _, c := range []struct {
		file  string
		steps []step
	}{
		{"01a", []step{
			{"database=users", 501, 500, "mongo_cps.database_users"},
			{"database=default", 501, 500, "mongo_cps.database_default"},
			{"database=other", 1000, 1000, ""},
		}},
		{"02a", []step{
			{"message_type=marketing,to_number=2061111111;to_number=2061111111", 6, 5, "messaging.message_type_marketing.to_number"},
			{"message_type=marketing,to_number=2062222222", 6, 5, ""},
			{"to_number=2062222222", 101, 100, "messaging.to_number"},
			{"to_number=2061111111", 101, 94, ""}, // the first step counted six
			{"message_type=marketing", 10, 10, ""},
			{"message_type=other,to_number=2061111111", 10, 10, ""},
		}},
		{"03a", []step{
			{"remote_address=50.0.0.1", 11, 10, "edge_proxy_per_ip.remote_address"},
			{"remote_address=50.0.0.2", 11, 10, ""},
			{"remote_address=50.0.0.5", 1, 0, "edge_proxy_per_ip.remote_address_50.0.0.5"},
		}},
		{"04a", []step{{"key=value,subkey=subvalue", 1000, 1000, ""}, {"key=value", 301, 300, ""}}},
		{"04b", []step{{"key=value,subkey=subvalue", 301, 300, "example4.key_value.subkey"}, {"key=value", 1000, 1000, ""}}},
		{"05a", []step{{"ldap=x", 1000, 1000, "internal.ldap"}, {"azure=x", 101, 100, "internal.azure"}}},
		{"06a", []step{
			{"service=auth-service,user=user-a", 1000, 1000, "example6.service.user_user-a"},
			{"service=auth-service,user=user-b", 21, 20, "example6.service.user_user-b"},
		}},
		{"07a", []step{
			{"key_1=value_1,user=bkthomps;key_2=value_2,user=bkthomps", 11, 10, ""},
			{"key_1=value_1,user=bkthomps", 6, 5, ""}, // not affected by the step before
			{"key_2=value_2,user=bkthomps", 1, 0, ""},
		}},
		{"08a", []step{
			{"key1=unspecified_value", 11, 10, "example8.key1_unspecified_value"},
			{"key1=unspecified_value2", 11, 10, "example8.key1_unspecified_value2"},
			{"key1=value1", 21, 20, "example8.key1_value1"},
		}},
		{"09a", []step{{"key1=value1", 21, 20, ""}, {"key1=valueXYZ", 21, 20, ""}, {"key1=other", 100, 100, ""}}},
		{"09b", []step{{"path=/api/123/action", 21, 20, ""}, {"path=/api/user-id/action", 21, 20, ""}, {"path=/api/123/other", 100, 100, ""}}},
		{"09c", []step{{"route=/api/v1/resource/123/action", 21, 20, ""}, {"route=/api/v2/resource/456/action", 21, 20, ""}}},
		{"10a", []step{
			{"route=api,http_method=GET,subject_id=123", 61, 60, "example10.route_api.http_method_GET.subject_id"},
			{"route=web,http_method=POST,subject_id=456", 61, 60, "example10.route_web.http_method_POST.subject_id"},
		}},
		{"10b", []step{
			{"user=alice,action=readfile,resource=documents", 101, 100, "example10_wildcard.user_alice.action_readfile.resource"},
		}},
		{"11a", []step{
			{"files=files/a.pdf", 5, 5, ""},
			{"files=files/b.csv", 5, 5, ""},
			{"files=files/c.txt", 1, 0, ""},
			{"files_no_share=files_no_share/a.pdf", 11, 10, ""},
			{"files_no_share=files_no_share/b.csv", 10, 10, ""},
		}},
		// The README tells another metric, route_api and method_GET, than its code makes.
		{"11b", []step{{"route=api/v1,method=GET", 30, 30, "example11_metrics.route_api/*.method"}, {"route=api/v2,method=GET", 31, 30, ""}}},
	} {
		config := parsed(t, "readme/"+c.file+".yaml")
		counts := counter{}
		for _, s := range c.steps {
			var ds []rules.Descriptor
			for text := range strings.SplitSeq(s.request, ";") {
				ds = append(ds, descriptor(text))
			}
			found := config.Match(config.Domains()[0], ds...)
			pass := 0
			for range s.times {
				if counts.pass(found) {
					pass++
				}
			}
			if pass != s.pass {
				t.Errorf("%s: %s: %d of %d requests pass, want %d", c.file, s.request, pass, s.times, s.pass)
			}
			if s.metric != "" && (found[0] == nil || found[0].Metric != s.metric) {
				t.Errorf("%s: %s: %+v, want the metric %s", c.file, s.request, found[0], s.metric)
			}
		}
	}
	all, err := filepath.Glob("testdata/readme/*.yaml")
	if err != nil || len(all) != 16 {
		t.Errorf("%d examples, %v", len(all), err)
	}
}
