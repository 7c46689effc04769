package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/testfuzz"
)

// answers gives every request the same answer.
type answers struct {
	status int
	media  string
	body   []byte
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {a.media}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

// FuzzAnswer: every answer of a server is read, or told to be a refusal or foreign.
func FuzzAnswer(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		`{"name":"acme/vm","limit":5}`, `{"entities":[{"name":"e"}],"next_page_token":"x"}`, `{"sites":[{"site":"us"}]}`, `{"sites":[{"partitions":[{}],"served":1,"imbalance":1e999}]}`, `{"sites":[{"served":-1}]}`, `[]`, `null`, ``, `{`,
	} {
		f.Add(200, "application/json", []byte(s))
	}
	f.Add(409, apierr.ProblemType, []byte(`{"reason":"OUT_OF_TOKENS","detail":"d","tokens_left":-3,"retry_after":"1s","violations":[{"field":"f"}]}`))
	f.Add(500, apierr.ProblemType, []byte(`null`))
	f.Add(404, "text/html", []byte(`<html>`))
	f.Add(302, apierr.ProblemType+"; a=b", []byte(`{}`))
	f.Fuzz(func(t *testing.T, status int, media string, body []byte) {
		if status/100 == 3 || status < 200 || status > 999 {
			return // a status that a transport never hands on, or a redirection
		}
		c, err := New("127.0.0.1:1", answers{status, media, body})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		_, list := c.ListEntities(ctx, "", 0, "")
		_, get := c.GetEntity(ctx, "e")
		_, move := c.Acquire(ctx, "e", Request{})
		_, sites := c.ListSites(ctx)
		_, mode := c.GetMode(ctx)
		_, forecast := c.GetForecast(ctx)
		_, inspect := c.InspectSites(ctx, "us")
		for _, err := range []error{list, get, move, sites, mode, forecast, inspect, c.DeleteEntity(ctx, "e")} {
			_, refused := errors.AsType[*apierr.Error](err)
			_, foreign := errors.AsType[*ForeignAnswerError](err)
			switch {
			case status/100 == 2 && (err == nil || foreign):
			case status/100 != 2 && (refused || foreign):
			default:
				t.Fatalf("status %d, %q %q: %v", status, media, body, err)
			}
			if err != nil && err.Error() == "" {
				t.Fatalf("status %d, %q %q: an error that says nothing", status, media, body)
			}
		}
	})
}
