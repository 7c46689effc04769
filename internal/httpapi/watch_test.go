package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

// TestWatch: states come in order until the entity is deleted, a problem is told, or the
// caller has enough.
func TestWatch(t *testing.T) {
	const one, two = `{"name":"acme","limit":3,"available":2,"resume_token":"a"}` + "\n", `{"name":"acme","limit":4,"resume_token":"b"}` + "\n"
	enough := errors.New("enough")
	for name, test := range map[string]struct {
		status int
		media  string
		lines  string
		// upTo is the limit of the state with which the caller has enough.
		upTo   int64
		tokens []string
		want   error
	}{
		"deleted":           {lines: one + two + `{"deleted":true,"resume_token":"c"}` + "\n" + one, tokens: []string{"a", "b", "c"}},
		"a problem":         {lines: one + `{"problem":{"reason":"SHUTTING_DOWN"}}` + "\n" + two, tokens: []string{"a"}, want: apierr.ShuttingDown},
		"enough":            {lines: one + two + one, upTo: 4, tokens: []string{"a", "b"}, want: enough},
		"the stream ends":   {lines: one, tokens: []string{"a"}, want: io.EOF},
		"refused":           {status: http.StatusNotFound, media: apierr.ProblemType + "; charset=utf-8", lines: `{"reason":"ENTITY_NOT_FOUND"}`, want: apierr.EntityNotFound},
		"accepted, not 200": {status: http.StatusAccepted, lines: one + `{"deleted":true}` + "\n", tokens: []string{"a", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.status == 0 {
				test.status = http.StatusOK
			}
			c := newClient(t, "am:1", answer(test.status, test.media, test.lines))
			var tokens []string
			err := c.WatchEntity(t.Context(), "acme", "", func(s httpapi.State) error {
				tokens = append(tokens, s.ResumeToken)
				if s.Available != 0 && (s.Name != "acme" || s.Available != 2) {
					t.Errorf("state %+v", s)
				}
				if test.upTo != 0 && s.Limit == test.upTo {
					return enough
				}
				return nil
			})
			if d := cmp.Diff(test.tokens, tokens); d != "" {
				t.Errorf("states (-want +got):\n%s", d)
			}
			if !errors.Is(err, test.want) {
				t.Errorf("ended with %v, want %v", err, test.want)
			}
		})
	}
	_, err := newClient(t, "am:1", answer(http.StatusBadGateway, "text/html", "<html>")).GetMode(t.Context())
	if e, ok := errors.AsType[*httpapi.ForeignAnswerError](err); !ok || e.Status != http.StatusBadGateway {
		t.Errorf("a foreign refusal: %v", err)
	}
	err = newClient(t, "am:1", answer(http.StatusBadGateway, "text/html", "<html>")).WatchEntity(t.Context(), "acme", "", nil)
	if e, ok := errors.AsType[*httpapi.ForeignAnswerError](err); !ok || e.Status != http.StatusBadGateway {
		t.Errorf("a foreign refusal of a watch: %v", err)
	}
}
