package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// gateway passes requests on to the endpoint of an LLM, within the budgets of teams.
type gateway struct {
	budgets             budgets
	backend, backendKey string
	// keys are the teams of API keys; nil: the field X-Team names the team.
	keys map[string]string
	// bytesPerToken and maxTokens are for the estimate of a request.
	bytesPerToken, maxTokens int64
	// failOpen lets requests pass while samya cannot be reached.
	failOpen bool
	// chargeFailures charges the prompt if the endpoint fails.
	chargeFailures bool
	log            *slog.Logger

	mu    sync.Mutex
	teams map[string]*usage
}

// usage is a gateway's own count of a team's requests and tokens.
type usage struct {
	Answered  int64 `json:"answered"`
	Refused   int64 `json:"refused"`
	Settled   int64 `json:"settled_tokens"`
	Uncharged int64 `json:"uncharged_tokens"`
}

const (
	maxBody       = 8 << 20
	maxAnswerBody = 32 << 20
	// maxTeams bounds the teams that are counted.
	maxTeams = 10_000
)

// ServeHTTP serves completions, and the gateway's own count at /usage.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/chat/completions" && r.Method == http.MethodPost:
		g.complete(w, r)
	case r.URL.Path == "/usage" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		g.mu.Lock()
		defer g.mu.Unlock()
		_ = json.NewEncoder(w).Encode(g.teams) // the caller has gone
	default:
		problem{Status: http.StatusNotFound, Title: "there are POST /v1/chat/completions and GET /usage"}.write(w)
	}
}

// complete reserves an estimate, asks the endpoint, and settles the tokens used.
func (g *gateway) complete(w http.ResponseWriter, r *http.Request) {
	team, ok := g.team(r)
	if !ok {
		problem{Status: http.StatusUnauthorized, Title: "no known API key, or no team"}.write(w)
		return
	}
	ask, err := readChat(http.MaxBytesReader(w, r.Body, maxBody), g.bytesPerToken, g.maxTokens)
	if err != nil {
		problem{Status: http.StatusBadRequest, Title: "a bad request", Detail: err.Error()}.write(w)
		return
	}
	held, err := g.budgets.reserve(r.Context(), team, ask.prompt+ask.answer)
	if err != nil && (!g.failOpen || !undecided(err)) {
		g.count(team, func(u *usage) { u.Refused++ })
		g.refuse(w, r, team, err)
		return
	}
	answer, used := g.ask(r.Context(), ask)
	g.settle(r.Context(), team, held, used)
	answer.write(w)
}

// settle charges the tokens used; held is nil if nothing could be reserved.
func (g *gateway) settle(ctx context.Context, team string, held *reservation, used int64) {
	var charged int64
	var err error
	if held != nil {
		charged, err = held.settle(ctx, used)
	}
	if err != nil || charged < used {
		g.log.Warn("tokens were not charged", "team", team, "used", used, "charged", charged, "error", err)
	}
	g.count(team, func(u *usage) {
		u.Answered++
		u.Settled += charged
		u.Uncharged += used - charged
	})
}

func (g *gateway) count(team string, f func(*usage)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.teams == nil {
		g.teams = make(map[string]*usage)
	}
	of := g.teams[team]
	if of == nil {
		if len(g.teams) >= maxTeams {
			return // without keys a caller may name any team
		}
		of = &usage{}
		g.teams[team] = of
	}
	f(of)
}

// teamName is a segment of an entity's name: a team cannot name another team's budget.
var teamName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// team is the team of a request: by its API key, or by X-Team if there are no keys.
func (g *gateway) team(r *http.Request) (string, bool) {
	if g.keys == nil {
		team := r.Header.Get("X-Team")
		return team, teamName.MatchString(team)
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	team, ok := g.keys[key]
	return team, ok
}

// reply is an answer for the caller.
type reply struct {
	status      int
	contentType string
	body        []byte
}

func (a *reply) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the caller has gone
}

// ask asks the endpoint. It returns its answer, and the tokens to charge.
func (g *gateway) ask(ctx context.Context, c *chat) (*reply, int64) {
	answer, err := g.post(ctx, c)
	failed := int64(0)
	if g.chargeFailures {
		failed = c.prompt
	}
	if err != nil {
		g.log.Warn("the endpoint does not answer", "error", err)
		p := problem{Status: http.StatusBadGateway, Title: "the LLM's endpoint does not answer"}
		return &reply{p.Status, problemType, p.json()}, failed
	}
	if answer.status != http.StatusOK {
		return answer, failed
	}
	used, told := usageOf(answer.body)
	if !told {
		used = c.prompt + c.answer
	}
	return answer, used
}

// post passes a request on.
func (g *gateway) post(ctx context.Context, c *chat) (*reply, error) {
	body, err := json.Marshal(c.fields)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.backend+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if g.backendKey != "" {
		r.Header.Set("Authorization", "Bearer "+g.backendKey)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBody+1))
	if err == nil && len(b) > maxAnswerBody {
		err = errors.New("an answer of more than 32 MiB")
	}
	return &reply{resp.StatusCode, resp.Header.Get("Content-Type"), b}, err
}
