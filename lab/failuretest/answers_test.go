package failuretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

// answer is a site's answer to a request: tokens moved, or a refusal.
type answer struct {
	id    string
	kind  ledger.Kind
	asked int64
	site  string
	// tokens and left are zero in a refusal.
	tokens, left int64
	// reason is empty unless the answer is a refusal.
	reason apierr.Reason
}

// answers is the transport of a load. It remembers every answer that binds its site.
type answers struct {
	transport *http.Transport

	mu    sync.Mutex
	first map[string]answer // by site and request id
	// contradictions describes each id that a site answered in two ways.
	contradictions []string
}

func newAnswers() *answers {
	return &answers{transport: load.NewTransport(load.DefaultInFlight), first: make(map[string]answer)}
}

func (s *answers) close() { s.transport.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (s *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	var asked httpapi.Request
	if err := json.NewDecoder(body).Decode(&asked); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	var conn httptrace.GotConnInfo
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { conn = c },
	}))
	resp, err := s.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w, on a connection that had been used before: %t, idle for %s", err, conn.Reused, conn.IdleTime)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	a := answer{id: asked.RequestID, asked: asked.Tokens, kind: ledger.Release}
	if strings.HasSuffix(r.URL.Path, ":acquire") {
		a.kind = ledger.Acquire
	}
	s.note(a, resp.StatusCode, text)
	return resp, nil
}

// note remembers an answer.
func (s *answers) note(a answer, status int, text []byte) {
	switch status {
	case http.StatusOK:
		var m httpapi.Moved
		if json.Unmarshal(text, &m) != nil {
			return // the load's client will complain
		}
		a.site, a.tokens, a.left = m.Site, m.Tokens, m.Left
	case http.StatusTooManyRequests:
		var p apierr.Problem
		if json.Unmarshal(text, &p) != nil {
			return
		}
		a.site, a.reason = p.Error().Site, p.Error().Reason
	default:
		return // it binds nobody
	}
	if a.site == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := a.site + " " + a.id
	if before, ok := s.first[key]; ok && before != a {
		s.contradictions = append(s.contradictions, fmt.Sprintf("%s answered %+v, and later %+v", a.site, before, a))
		return
	}
	s.first[key] = a
}

// at returns the answers of a site.
func (s *answers) at(site string) []answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var given []answer
	for _, a := range s.first {
		if a.site == site {
			given = append(given, a)
		}
	}
	return given
}
