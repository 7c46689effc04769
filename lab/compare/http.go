package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/samya-db/samya/internal/apierr"
)

// maxAnswer bounds the part of an HTTP answer that the driver reads, in bytes.
const maxAnswer = 64 << 10

// httpDriver makes an HTTP call for each operation.
type httpDriver struct {
	addr   string
	client *http.Client
}

func newHTTPDriver(addr string) *httpDriver {
	t := &http.Transport{MaxIdleConnsPerHost: manyCallers}
	return &httpDriver{addr: addr, client: &http.Client{Transport: t}}
}

// Acquire makes the calls in turn.
func (d *httpDriver) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	for i, r := range requests {
		var err error
		if granted[i], err = d.acquire(ctx, r); err != nil {
			return fmt.Errorf("request %s: %w", r.ID, err)
		}
	}
	return nil
}

func (d *httpDriver) acquire(ctx context.Context, r Request) (bool, error) {
	// Names and ids need no escaping.
	url := "http://" + d.addr + "/v1/entities/" + r.Entity + ":acquire"
	body := `{"tokens":1,"wait":"0s","request_id":` + strconv.Quote(r.ID) + `}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return false, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return false, err
	}
	if resp.StatusCode == http.StatusOK {
		return true, nil
	}
	var problem apierr.Problem
	if err := json.Unmarshal(answer, &problem); err == nil && problem.Reason == apierr.OutOfTokens {
		return false, nil
	}
	return false, fmt.Errorf("%s: %.200s", resp.Status, answer)
}

// Close closes the connections.
func (d *httpDriver) Close() error {
	d.client.CloseIdleConnections()
	return nil
}
