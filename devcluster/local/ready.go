package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/samya-db/samya/internal/tlsconf"
)

// askTimeout bounds a request for /readyz.
const askTimeout = 2 * time.Second

// asker asks processes whether they are ready.
type asker struct {
	scheme string
	client *http.Client
}

// newAsker returns an asker with the administrator's credentials, if the cluster has
// TLS.
func newAsker(cfg Config) (*asker, error) {
	t := &http.Transport{DisableKeepAlives: true}
	a := &asker{scheme: "http", client: &http.Client{Transport: t}}
	if cfg.TLS {
		store, err := tlsconf.Open(cfg.Credentials(), nil)
		if err != nil {
			return nil, fmt.Errorf("read the credentials of the cluster: %w", err)
		}
		a.scheme, t.DialTLSContext = "https", store.DialHTTP("")
	}
	return a, nil
}

// serves asks a process a single time.
func (a *asker) serves(ctx context.Context, p Process) error {
	role, err := a.role(ctx, p)
	if err == nil && role != RoleActive {
		err = errors.New("the node follows")
	}
	return err
}

// follows is in the /readyz of a node that follows.
const follows = " follows"

// role asks a process a single time for its role. A process that serves is active.
func (a *asker) role(ctx context.Context, p Process) (string, error) {
	page := "/readyz"
	if p.Kind == KindEtcd {
		page = "/health"
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.scheme+"://"+p.HTTP+page, nil)
	if err != nil {
		return "", err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // the body only explains a refusal
	switch {
	case resp.StatusCode == http.StatusOK:
		return RoleActive, nil
	case p.Node != "" && bytes.Contains(body, []byte(follows)):
		return RoleStandby, nil
	}
	return "", fmt.Errorf("%s answers %s: %s", page, resp.Status, bytes.TrimSpace(body))
}
