package httpapi

import (
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The JSON shapes of answers that people look at more than programs.

type surveyStatus struct {
	Complete bool         `json:"complete"`
	Sites    []siteSurvey `json:"sites"`
}

// siteSurvey has zeros for a site that is not known.
type siteSurvey struct {
	Site            string     `json:"site"`
	Known           bool       `json:"known"`
	Problem         string     `json:"problem,omitempty"`
	UpMS            int64      `json:"up_ms"`
	WaitsFor        string     `json:"waits_for"`
	Entities        int64      `json:"entities"`
	TokensLeft      int64      `json:"tokens_left"`
	TokensOut       int64      `json:"tokens_out"`
	TokensOffered   int64      `json:"tokens_offered"`
	Waiting         int64      `json:"waiting"`
	Leases          int64      `json:"leases"`
	AcquiresGranted uint64     `json:"acquires_granted"`
	AcquiresRefused uint64     `json:"acquires_refused"`
	Releases        uint64     `json:"releases"`
	Partitions      int64      `json:"partitions"`
	Peers           []peerLink `json:"peers"`
	AgeMS           int64      `json:"age_ms"`
}

type peerLink struct {
	Site      string `json:"site"`
	Connected bool   `json:"connected"`
	// RoundTripMS is null if it is not measured.
	RoundTripMS *float64 `json:"round_trip_ms"`
}

func surveyJSON(r *samyav1.SurveySitesResponse) surveyStatus {
	out := surveyStatus{Complete: r.GetComplete(), Sites: []siteSurvey{}}
	for _, s := range r.GetSites() {
		one := siteSurvey{
			Site: s.GetSite(), Known: s.GetKnown(), Problem: s.GetProblem(), UpMS: s.GetUp().AsDuration().Milliseconds(), WaitsFor: s.GetWaitsFor(),
			Entities: s.GetEntities(), TokensLeft: s.GetTokensLeft(), TokensOut: s.GetTokensOut(), TokensOffered: s.GetTokensOffered(),
			Waiting: s.GetWaiting(), Leases: s.GetLeases(), AcquiresGranted: s.GetGranted(), AcquiresRefused: s.GetRefused(), Releases: s.GetReleased(),
			Partitions: s.GetPartitions(), Peers: []peerLink{}, AgeMS: s.GetAge().AsDuration().Milliseconds(),
		}
		for _, p := range s.GetPeers() {
			link := peerLink{Site: p.GetSite(), Connected: p.GetConnected()}
			if p.GetRoundTrip() != nil {
				link.RoundTripMS = new(float64(p.GetRoundTrip().AsDuration()) / float64(time.Millisecond))
			}
			one.Peers = append(one.Peers, link)
		}
		out.Sites = append(out.Sites, one)
	}
	return out
}

type entityActivity struct {
	Complete bool           `json:"complete"`
	NowMS    int64          `json:"now_ms"`
	Sites    []siteActivity `json:"sites"`
}

type siteActivity struct {
	Site    string          `json:"site"`
	Known   bool            `json:"known"`
	Problem string          `json:"problem,omitempty"`
	Model   string          `json:"model"`
	Points  []activityPoint `json:"points"`
	Moves   []tokenMove     `json:"moves"`
}

type activityPoint struct {
	AtMS     int64 `json:"at_ms"`
	TookMS   int64 `json:"took_ms"`
	Granted  int64 `json:"granted"`
	Refused  int64 `json:"refused"`
	Released int64 `json:"released"`
	Waiting  int64 `json:"waiting"`
	Left     int64 `json:"left"`
	Net      int64 `json:"net"`
	// Forecast is null if there is none.
	Forecast *forecastBand `json:"forecast"`
}

type forecastBand struct {
	Expected  float64 `json:"expected"`
	Median    float64 `json:"median"`
	High      float64 `json:"high"`
	HorizonMS int64   `json:"horizon_ms"`
}

type tokenMove struct {
	AtMS   int64  `json:"at_ms"`
	From   string `json:"from"`
	To     string `json:"to"`
	Tokens int64  `json:"tokens"`
	By     string `json:"by"`
}

func activityJSON(r *samyav1.GetEntityActivityResponse) entityActivity {
	out := entityActivity{Complete: r.GetComplete(), NowMS: r.GetNowMs(), Sites: []siteActivity{}}
	for _, s := range r.GetSites() {
		one := siteActivity{Site: s.GetSite(), Known: s.GetKnown(), Problem: s.GetProblem(), Model: s.GetModel(), Points: []activityPoint{}, Moves: []tokenMove{}}
		for _, p := range s.GetPoints() {
			point := activityPoint{
				AtMS: p.GetAtMs(), TookMS: p.GetTookMs(), Granted: p.GetGranted(), Refused: p.GetRefused(), Released: p.GetReleased(),
				Waiting: p.GetWaiting(), Left: p.GetLeft(), Net: p.GetNet(),
			}
			if f := p.GetForecast(); f != nil {
				point.Forecast = &forecastBand{Expected: f.GetExpected(), Median: f.GetMedian(), High: f.GetHigh(), HorizonMS: f.GetHorizonMs()}
			}
			one.Points = append(one.Points, point)
		}
		for _, m := range s.GetMoves() {
			one.Moves = append(one.Moves, tokenMove{AtMS: m.GetAtMs(), From: m.GetFrom(), To: m.GetTo(), Tokens: m.GetTokens(), By: m.GetBy()})
		}
		out.Sites = append(out.Sites, one)
	}
	return out
}

type entityHistory struct {
	Complete     bool           `json:"complete"`
	Changes      []entityChange `json:"changes"`
	MissingSites []string       `json:"missing_sites"`
}

type entityChange struct {
	AtMS      int64  `json:"at_ms"`
	Caller    string `json:"caller"`
	RequestID string `json:"request_id"`
	Kind      string `json:"kind"`
	// OldLimit is null if it is not known.
	OldLimit   *int64 `json:"old_limit"`
	NewLimit   int64  `json:"new_limit"`
	Version    uint64 `json:"version"`
	Generation uint64 `json:"generation"`
	Parent     string `json:"parent"`
	Site       string `json:"site"`
}

func historyJSON(r *samyav1.GetEntityHistoryResponse) entityHistory {
	out := entityHistory{Complete: r.GetComplete(), Changes: []entityChange{}, MissingSites: append([]string{}, r.GetMissingSites()...)}
	for _, c := range r.GetChanges() {
		out.Changes = append(out.Changes, entityChange{
			AtMS: c.GetAtMs(), Caller: c.GetCaller(), RequestID: c.GetRequestId(), Kind: c.GetKind(), OldLimit: c.OldLimit, NewLimit: c.GetNewLimit(),
			Version: c.GetVersion(), Generation: c.GetGeneration(), Parent: c.GetParent(), Site: c.GetSite(),
		})
	}
	return out
}

// dryRun is what a change would do.
type dryRun struct {
	Complete       bool          `json:"complete"`
	Effects        []string      `json:"effects"`
	TokensShort    int64         `json:"tokens_short"`
	ReleasesNeeded int64         `json:"releases_needed"`
	Sites          []dryRunShare `json:"sites"`
}

type dryRunShare struct {
	Site       string `json:"site"`
	LeftBefore int64  `json:"left_before"`
	LeftAfter  int64  `json:"left_after"`
}

// dryRunJSON is nil for a change that was no dry run.
func dryRunJSON(r *samyav1.DryRun) *dryRun {
	if r == nil {
		return nil
	}
	out := &dryRun{
		Complete: r.GetComplete(), Effects: append([]string{}, r.GetEffects()...), TokensShort: r.GetTokensShort(), ReleasesNeeded: r.GetReleasesNeeded(),
		Sites: []dryRunShare{},
	}
	for _, s := range r.GetSites() {
		out.Sites = append(out.Sites, dryRunShare{Site: s.GetSite(), LeftBefore: s.GetLeftBefore(), LeftAfter: s.GetLeftAfter()})
	}
	return out
}
