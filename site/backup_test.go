package site_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/sitetest"
	"github.com/samya-db/samya/site/store"
)

// backupOf asks a site for a backup.
func backupOf(t *testing.T, c *sitetest.Cluster, name string) ([]byte, error) {
	t.Helper()
	stream, err := samyav1.NewSiteServiceClient(c.Conn(name)).Backup(t.Context(), &samyav1.BackupRequest{Site: name})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		out.Write(m.GetData())
	}
}

// verified returns what is in a backup that a site has to make.
func verified(t *testing.T, c *sitetest.Cluster, name string) ([]byte, store.Verified) {
	t.Helper()
	raw, err := backupOf(t, c, name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.Verify(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return raw, v
}

// borrowers acquire and release tokens at sites until they are stopped.
type borrowers struct {
	group sync.WaitGroup
	stop  context.CancelFunc
	// out are the tokens that they hold, by the answers.
	out  atomic.Int64
	done atomic.Int64
}

func borrowAt(t *testing.T, c *sitetest.Cluster, ids, entity string, sites ...string) *borrowers {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &borrowers{stop: stop}
	for i := range 32 {
		at := sites[i%len(sites)]
		l.group.Go(func() {
			held := int64(0)
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%s-%d-%d", ids, i, n)
				if held > 20 {
					// The caller ends between requests, so that each has its answer.
					if _, err := c.Tokens(at).Release(t.Context(), &samyav1.ReleaseRequest{Entity: entity, Tokens: held, RequestId: id}); err != nil {
						t.Error(err)
						return
					}
					l.out.Add(-held)
					held = 0
				}
				if _, err := c.Tokens(at).Acquire(t.Context(), &samyav1.AcquireRequest{Entity: entity, Tokens: 3, RequestId: id + "a"}); err == nil {
					held += 3
					l.out.Add(3)
				} else if apierr.ReasonOf(err) != apierr.OutOfTokens {
					t.Error(err)
					return
				}
				l.done.Add(1)
			}
		})
	}
	return l
}

func (l *borrowers) end() {
	l.stop()
	l.group.Wait()
}

// restored puts a backup in the place of a stopped site's data.
func restored(t *testing.T, c *sitetest.Cluster, name string, raw []byte) {
	t.Helper()
	if err := os.RemoveAll(c.DataDir(name)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(c.DataDir(name), bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
}

// TestBackupUnderLoad: a site under load makes backups, is destroyed and restored from
// the last, and the books of the cluster are what they were. A restore from an earlier
// backup is refused.
func TestBackupUnderLoad(t *testing.T) {
	c := sitetest.Start(t, []string{"us", "eu", "as"}, nil)
	c.Create("acme/vm", 3000)
	l := borrowAt(t, c, "before", "acme/vm", "us", "eu", "as")
	old, before := verified(t, c, "us")
	for range 3 {
		at := l.done.Load()
		_, v := verified(t, c, "us")
		if v.Commit < before.Commit || v.Entities != 1 || v.Cluster != "test" || v.Site != "us" {
			t.Errorf("%+v", v)
		}
		before = v
		sitetest.Eventually(t, "load", func() error {
			if l.done.Load() == at {
				return errors.New("nothing is served")
			}
			return nil
		})
	}
	l.end()
	// Once nothing is under way, the last backup is the latest data.
	var raw []byte
	sitetest.Eventually(t, "rest", func() error {
		latest, v := verified(t, c, "us")
		if v.Commit != before.Commit {
			before = v
			return fmt.Errorf("it goes on to commit %d", v.Commit)
		}
		raw = latest
		return nil
	})
	c.Stop("us")
	restored(t, c, "us", raw)
	c.Boot("us")
	balance := func() error {
		u := c.Books("acme/vm")
		if u.GetAcquired() != l.out.Load() || u.GetAvailable()+u.GetAcquired()+u.GetInTransit() != 3000 {
			return fmt.Errorf("callers have %d tokens; %v", l.out.Load(), u)
		}
		return nil
	}
	sitetest.Eventually(t, "service", func() error {
		_, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "after"})
		return err
	})
	l.out.Add(1)
	sitetest.Eventually(t, "balance", balance)
	// Others hear of what the site has done since.
	c.AwaitLinks()
	more := borrowAt(t, c, "later", "acme/vm", "us")
	sitetest.Eventually(t, "more load", func() error {
		if more.done.Load() < 200 {
			return errors.New("little is served")
		}
		return nil
	})
	more.end()
	l.out.Add(more.out.Load())
	sitetest.Eventually(t, "balance", balance)
	c.Stop("us")
	restored(t, c, "us", old)
	c.Boot("us")
	err := c.Ended("us")
	if _, stale := errors.AsType[*core.StaleError](err); !stale || !strings.Contains(err.Error(), "older copy") {
		t.Errorf("an old backup: %v", err)
	}
}

// TestBackupRefusals: which backups a site does not make.
func TestBackupRefusals(t *testing.T) {
	c := sitetest.Start(t, []string{"us", "eu"}, nil)
	c.Create("acme/vm", 10)
	us := samyav1.NewSiteServiceClient(c.Conn("us"))
	for name, want := range map[string]string{"eu": "this is us", "U S": "allowed are"} {
		stream, err := us.Backup(t.Context(), &samyav1.BackupRequest{Site: name})
		if err == nil {
			_, err = stream.Recv()
		}
		if apierr.ReasonOf(err) != apierr.InvalidField || !strings.Contains(err.Error(), want) {
			t.Errorf("of site %q: %v", name, err)
		}
	}
	// A site that nobody vouches for.
	c.Stop("us")
	c.Partition()
	c.Boot("us")
	if _, err := backupOf(t, c, "us"); apierr.ReasonOf(err) != apierr.SiteUnavailable || !strings.Contains(err.Error(), "vouch") {
		t.Errorf("a site that waits: %v", err)
	}
	c.Heal()
}
