package main

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/site/sitetest"
)

// TestGuardedCluster: a site and an app manager run with certificates, an access file and
// a key of gossip, by flags alone. So do the commands that talk to them.
func TestGuardedCluster(t *testing.T) {
	set := credtest.New(t)
	key := filepath.Join(set.Dir, "gossip.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	guarded := func(f tlsconf.Files) string {
		return " --tls-cert " + f.Cert + " --tls-key " + f.Key + " --tls-ca " + f.CA + " --tls-crl " + f.CRL +
			" --access-file " + set.AccessFile() + " --gossip-key-file " + key + " --preset local"
	}
	siteFiles, managerFiles := set.Issue(tlsconf.Site, "us", time.Hour), set.Issue(tlsconf.AppManager, "am", time.Hour)
	data := filepath.Join(t.TempDir(), "us")
	grpc, http, gossip, api := sitetest.FreePort(t), sitetest.FreePort(t), sitetest.FreePort(t), sitetest.FreePort(t)
	site := "site --name us --members us --data " + data + " --grpc " + grpc + " --http " + http + " --gossip " + gossip
	manager := "appmgr --name am --join " + gossip + " --http " + api + " --grpc " + sitetest.FreePort(t) + " --gossip 127.0.0.1:0"
	s := newShell(t)
	delete(s.env, "SAMYA_ADDR")
	for line, says := range map[string]string{
		site + guarded(managerFiles):                "tls-cert: is the certificate of appmgr/am, must be that of site/us",
		manager + guarded(siteFiles):                "tls-cert: is the certificate of site/us, must be that of an app manager",
		site + " --access-file " + set.AccessFile(): "access-file: needs certificates",
		site + guarded(set.IssueForeign(tlsconf.Site, "us")) + " --tls-key " + siteFiles.Key: "tls: ",
	} {
		if code, _, stderr := s.run(line); code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("exit status %d, %q does not say %q", code, stderr, says)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for _, line := range []string{site + guarded(siteFiles), manager + guarded(managerFiles)} {
		all.Go(func() {
			var errs strings.Builder
			p := &program{stdin: strings.NewReader(""), stdout: &errs, stderr: &errs, lookupEnv: func(string) (string, bool) { return "", false }}
			if code := p.run(ctx, strings.Fields(line)); code != exitOK {
				t.Errorf("samya %s: exit status %d: %s", line, code, errs.String())
			}
		})
	}
	for _, c := range []string{"admin", "client", "nobody"} {
		if err := os.WriteFile(filepath.Join(set.Dir, c+".token"), []byte(credtest.Token(c)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	show := func(caller string) string {
		return " --tls-ca " + set.Believing().CA + " --token-file " + filepath.Join(set.Dir, caller+".token")
	}
	at := " --addr https://" + api
	sitetest.Eventually(t, "the cluster", func() error {
		if code, _, stderr := s.run("entity create acme/vm --limit 10" + at + show("admin")); code != exitOK {
			return errors.New(stderr)
		}
		return nil
	})
	operator := set.Issue(tlsconf.Client, "operator", time.Hour)
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"acquire acme/vm 3" + at + show("client"):                    {exitOK, "3"},
		"acquire acme/vm 1 --addr " + api + show("client"):           {exitOK, "1"},
		"acquire acme/vm 1" + at + show("nobody"):                    {exitFailed, "show who you are with --token-file"},
		"acquire acme/vm 1" + at + " --tls-ca " + set.Believing().CA: {exitFailed, "UNAUTHENTICATED"},
		"acquire zeta/vm 1" + at + show("client"):                    {exitFailed, "PERMISSION_DENIED"},
		"entity set-limit acme/vm 20" + at + show("client"):          {exitFailed, "this takes the role operator"},
		"entity set-limit acme/vm 20" + at + " --tls-ca " + operator.CA + " --tls-cert " + operator.Cert + " --tls-key " + operator.Key: {exitOK, "20"},
		"entity get acme/vm" + at: {exitUnreachable, "see --tls-ca"},
		"entity get acme/vm" + at + show("admin") + " --tls-server-name elsewhere": {exitUnreachable, "elsewhere"},
		"entity get acme/vm --addr http://" + api + show("admin"):                  {exitUsage, "is not encrypted"},
		"site inspect --site " + grpc + show("admin"):                              {exitOK, "us"},
		"site inspect --site " + grpc + show("client"):                             {exitFailed, "PERMISSION_DENIED"},
		// A busy machine looks for a tenth of a second longer.
		"doctor --watch-for 1s" + at + show("admin"):        {exitCritical, "2 processes, looked for 1"},
		"doctor --json --watch-for 1s" + at + show("admin"): {exitCritical, `"id": "SamyaCertificateEndsSoon"`},
		"doctor --watch-for 1s" + at + show("nobody"):       {exitWarning, "WARNING SamyaMetricsUnread"},
		"doctor --watch-for 1s" + at:                        {exitCritical, "None of 1 processes answers."},
	} {
		code, stdout, stderr := s.run(line)
		if code != want.code || !strings.Contains(stdout+stderr, want.says) {
			t.Errorf("samya %s: exit status %d, want %d: %s%s does not say %q", line, code, want.code, stdout, stderr, want.says)
		}
	}
	audit, err := os.ReadFile(filepath.Join(data, "audit.log"))
	if err != nil || !strings.Contains(string(audit), `"caller":"operator","via":"appmgr/am"`) {
		t.Errorf("the audit log is %s, %v", audit, err)
	}
}
