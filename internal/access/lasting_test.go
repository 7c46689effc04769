package access_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// look makes all guards and stores look at their files.
func (c *cluster) look() {
	for _, s := range c.stores {
		s.Look()
	}
	for _, g := range c.guards {
		g.Look()
	}
}

// TestWithdrawn: withdrawing a key, a token, a role or a certificate ends the calls of
// its holder, also open streams and watches.
func TestWithdrawn(t *testing.T) {
	hour := time.Hour
	for name, tc := range map[string]struct {
		shows func(*cluster) shown
		take  func(*cluster)
	}{
		"a key of JWTs": {
			func(c *cluster) shown {
				return shown{files: c.set.Believing(), authorization: "Bearer " + c.set.JWT(nil)}
			},
			func(c *cluster) { c.set.AddKey("second"); c.set.WithdrawKey() },
		},
		"a token": {
			func(c *cluster) shown { return c.caller("client") },
			func(c *cluster) {
				rewrite(c, "role: client, certificate: client", "role: client, certificate: none")
			},
		},
		"a role": {
			func(c *cluster) shown { return c.caller("client") },
			func(c *cluster) {
				rewrite(c, "name: client, role: client", "name: client, role: operator")
			},
		},
		"a certificate": {
			func(c *cluster) shown { return shown{files: c.set.Issue(tlsconf.Client, "client", hour)} },
			func(c *cluster) {
				f := c.set.Believing()
				f.Cert = c.set.Dir + "/client-client.pem"
				c.set.Revoke(f)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, access.Limits{})
			shows := tc.shows(c)
			for i, addr := range []string{c.site.GRPCAddr(), c.manager.GRPCAddr()} {
				conn := c.dial(addr, shows)
				stream, err := samyav1.NewTokenServiceClient(conn).Stream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := stream.Recv(); err != nil {
					t.Fatal(err)
				}
				watch, err := samyav1.NewEntityServiceClient(conn).WatchEntity(t.Context(), &samyav1.WatchEntityRequest{Name: "acme/vm"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := watch.Recv(); err != nil {
					t.Fatal(err)
				}
				// A look ends no call that is still good.
				c.guards[i].Look()
				defer func() {
					for {
						_, err := watch.Recv()
						if err == nil {
							continue
						}
						if name != "a certificate" && apierr.ReasonOf(apierr.FromGRPC(err)) != apierr.Unauthenticated {
							t.Errorf("%d: the watch ends with %v", i, err)
						}
						break
					}
					if _, err := stream.Recv(); err == nil || name != "a certificate" && apierr.ReasonOf(apierr.FromGRPC(err)) != apierr.Unauthenticated {
						t.Errorf("%d: the stream ends with %v", i, err)
					}
				}()
			}
			// A watch by HTTP as well.
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.manager.HTTPAddr()+"/v1/entities/acme/vm:watch", nil)
			if err != nil {
				t.Fatal(err)
			}
			if shows.authorization != "" {
				r.Header.Set("Authorization", shows.authorization)
			}
			resp, err := c.web(shows).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body := bufio.NewReader(resp.Body)
			if line, err := body.ReadString('\n'); err != nil || !strings.Contains(line, "acme/vm") {
				t.Fatalf("%q, %v", line, err)
			}
			tc.take(c)
			c.look()
			rest, err := io.ReadAll(body)
			if err != nil || !strings.Contains(string(rest), "UNAUTHENTICATED") {
				t.Errorf("the watch by HTTP ends with %q, %v", rest, err)
			}
		})
	}
}

// rewrite replaces old in the access file. If now ends in "none", the caller's line loses
// its token too.
func rewrite(c *cluster, old, now string) {
	t := c.t
	t.Helper()
	b, err := os.ReadFile(c.set.AccessFile())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), old, now, 1)
	if strings.HasSuffix(now, "none") {
		i := strings.Index(text, now)
		from := i + len(now)
		to := from + strings.Index(text[from:], ", prefixes")
		text = text[:from] + text[to:]
	}
	if text == string(b) {
		t.Fatalf("the access file has no %q", old)
	}
	if err := os.WriteFile(c.set.AccessFile(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAudit: the log of a change names its caller, at a site also when an app manager
// asks on behalf of the caller.
func TestAudit(t *testing.T) {
	c := start(t, access.Limits{})
	before := records(t, c.audit)
	for addr, via := range map[string]string{c.site.GRPCAddr(): "", c.manager.GRPCAddr(): "appmgr/am"} {
		entities := samyav1.NewEntityServiceClient(c.dial(addr, c.caller("operator")))
		if _, err := entities.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "acme/vm", Limit: 1001, RequestId: "r" + via[:min(1, len(via))]}); err != nil {
			t.Fatal(err)
		}
		if _, err := entities.DeleteEntity(t.Context(), &samyav1.DeleteEntityRequest{Name: "acme/none"}); err == nil {
			t.Fatal("deleted")
		}
		// A dry run is no change; a site refuses it.
		if _, err := entities.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "acme/vm", Limit: 1, DryRun: true}); (err == nil) != (via != "") {
			t.Fatal(err)
		}
		if _, err := samyav1.NewTokenServiceClient(c.dial(addr, c.caller("client"))).Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}); err != nil {
			t.Fatal(err)
		}
		after := records(t, c.audit)
		added := after[len(before):]
		before = after
		if len(added) != 4 {
			t.Fatalf("%+v", added)
		}
		for i, want := range []string{"", "OK", "", "ENTITY_NOT_FOUND"} {
			r := added[i]
			if r.Caller != "operator" || r.Via != via || r.Outcome != want || r.Number != added[i/2*2].Number || r.Entity == "" || (want == "") != (len(r.Request) > 0) {
				t.Errorf("line %d: %+v", i, r)
			}
		}
	}
}

// TestAuditOfStreams: a change that answers with a stream has the two lines of a change,
// and a single line if it is refused.
func TestAuditOfStreams(t *testing.T) {
	c := start(t, access.Limits{})
	before := len(records(t, c.audit))
	for _, test := range []struct {
		caller, site string
		outcomes     []string
	}{
		{"admin", "us", []string{"", "OK"}},
		{"admin", "none-such", []string{"", "INVALID_FIELD"}},
		{"operator", "us", []string{"PERMISSION_DENIED"}},
		{"nobody", "us", []string{"UNAUTHENTICATED"}},
	} {
		stream, err := samyav1.NewSiteServiceClient(c.dial(c.site.GRPCAddr(), c.caller(test.caller))).Backup(t.Context(), &samyav1.BackupRequest{Site: test.site})
		for err == nil {
			_, err = stream.Recv()
		}
		if done := errors.Is(err, io.EOF); done != (test.outcomes[len(test.outcomes)-1] == "OK") {
			t.Errorf("%s: %v", test.caller, err)
		}
		added := records(t, c.audit)[before:]
		before += len(added)
		if len(added) != len(test.outcomes) {
			t.Fatalf("%s: %+v", test.caller, added)
		}
		for i, want := range test.outcomes {
			r := added[i]
			if r.Outcome != want || r.Number != added[0].Number || !strings.HasSuffix(r.Method, "/Backup") || (want == "") != (len(r.Request) > 0) ||
				test.caller != "nobody" && r.Caller != test.caller {
				t.Errorf("%s: line %d is %+v, want the outcome %s", test.caller, i, r, want)
			}
		}
	}
}

// TestAuditOfRefusals: a change that its caller may not make has a single line, with the
// caller, its address and the reason of the refusal.
func TestAuditOfRefusals(t *testing.T) {
	c := start(t, access.Limits{})
	before := len(records(t, c.audit))
	for _, test := range []struct{ caller, outcome string }{{"client", "PERMISSION_DENIED"}, {"", "UNAUTHENTICATED"}} {
		creds := c.caller("client")
		if test.caller == "" {
			creds = c.caller("nobody")
		}
		entities := samyav1.NewEntityServiceClient(c.dial(c.site.GRPCAddr(), creds))
		if _, err := entities.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "acme/vm", Limit: 1, RequestId: "r"}); err == nil {
			t.Fatal("changed")
		}
		added := records(t, c.audit)[before:]
		before += len(added)
		if len(added) != 1 {
			t.Fatalf("%s: %+v", test.caller, added)
		}
		if r := added[0]; r.Outcome != test.outcome || r.Address == "" || r.Entity != "acme/vm" || r.RequestID != "r" || !strings.HasSuffix(r.Method, "UpdateEntity") || (test.caller != "" && r.Caller != test.caller) {
			t.Errorf("%+v, want the outcome %s", r, test.outcome)
		}
	}
}

// auditLine is a line of the audit log.
type auditLine struct {
	Time                                                time.Time
	Number                                              uint64
	Caller, Via, Role, Method, Entity, Address, Outcome string
	RequestID                                           string `json:"request_id"`
	Request                                             json.RawMessage
}

func records(t *testing.T, path string) []auditLine {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []auditLine
	for line := range strings.Lines(string(b)) {
		var r auditLine
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestRateOfCallers: calls, batches and streams beyond a caller's rate are refused, over
// gRPC and HTTP. Other callers are not refused.
func TestRateOfCallers(t *testing.T) {
	c := start(t, access.Limits{Rate: 0.001, InFlight: 100})
	for name, addr := range map[string]string{"site": c.site.GRPCAddr(), "app manager": c.manager.GRPCAddr()} {
		tokens := samyav1.NewTokenServiceClient(c.dial(addr, c.caller("client")))
		if _, err := tokens.Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}); err != nil {
			t.Errorf("%s: the first: %v", name, err)
		}
		if _, err := tokens.Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}); apierr.ReasonOf(apierr.FromGRPC(err)) != apierr.RateLimited {
			t.Errorf("%s: the second: %v", name, err)
		}
		stream, err := tokens.Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		op := &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}}}
		if err := stream.Send(&samyav1.StreamRequest{Calls: []*samyav1.Call{{Tag: 7, Operation: op}}}); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := stream.Recv()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(m.GetReplies()) > 0 {
				if r := m.GetReplies()[0]; r.GetTag() != 7 || apierr.FromFailure(r.GetResult().GetFailure()).Reason != apierr.RateLimited {
					t.Errorf("%s: by the stream: %v", name, r)
				}
				break
			}
		}
		if _, err := samyav1.NewTokenServiceClient(c.dial(addr, c.caller("other"))).Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "zeta/vm", Tokens: 1}); err != nil {
			t.Errorf("%s: another: %v", name, err)
		}
	}
	shows := c.caller("client")
	if _, answer, err := c.request(c.web(shows), shows, c.manager.HTTPAddr(), "POST", "/v1/entities/acme/vm:acquire", `{"tokens":1}`); err != nil || !strings.Contains(answer, "RATE_LIMITED") {
		t.Errorf("by HTTP: %v: %s", err, answer)
	}
}

// TestTokenInClear: the SDK sends no token to another machine in clear.
func TestTokenInClear(t *testing.T) {
	cfg := client.Config{Targets: []client.Target{{Address: "samya.example:8180"}}, Token: client.TokenFile("x")}
	if c, err := client.New(cfg); err == nil {
		_ = c.Close(t.Context())
		t.Error("it would")
	}
	file := t.TempDir() + "/token"
	if _, err := client.TokenFile(file)(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte(credtest.Token("client")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := client.TokenFile(file)(t.Context()); err != nil || token != credtest.Token("client") {
		t.Errorf("%q, %v", token, err)
	}
}
