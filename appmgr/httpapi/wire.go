package httpapi

import (
	"fmt"
	"strings"
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The JSON shapes of answers. Numbers are JSON numbers: all are within 2^53.

type entity struct {
	Name       string `json:"name"`
	Limit      int64  `json:"limit"`
	Generation uint64 `json:"generation"`
	Version    uint64 `json:"version"`
	Parent     string `json:"parent,omitempty"`
	Children   int32  `json:"children,omitempty"`
	Per        string `json:"per,omitempty"`
	Kind       string `json:"kind,omitempty"`
	TimeZone   string `json:"time_zone,omitempty"`
	Durable    *bool  `json:"durable,omitempty"`
	Keys       bool   `json:"keys,omitempty"`
}

// created is the answer to a creation.
type created struct {
	entity
	DryRun *dryRun `json:"dry_run,omitempty"`
}

// changedLimit is the answer to a change of a limit.
type changedLimit struct {
	entity
	MayExceedBy  int64    `json:"may_exceed_by"`
	MissingSites []string `json:"missing_sites"`
	DryRun       *dryRun  `json:"dry_run,omitempty"`
}

// cut is the answer to a cut.
type cut struct {
	entity
	Cut        string `json:"cut"`
	InUse      int64  `json:"in_use"`
	Returning  int64  `json:"returning"`
	Leased     int64  `json:"leased"`
	Surplus    int64  `json:"surplus"`
	WrittenOff int64  `json:"written_off"`
	BegunMS    int64  `json:"begun_ms"`
	EndedMS    int64  `json:"ended_ms"`
}

// reconciled is the answer to a reconciliation.
type reconciled struct {
	changedLimit
	Returned int64 `json:"returned"`
}

type entityStatus struct {
	entity
	Available int64 `json:"available"`
	Acquired  int64 `json:"acquired"`
	// InTransit is null unless the read is complete: the rest of the limit may be
	// anywhere.
	InTransit *int64 `json:"in_transit"`
	Complete  bool   `json:"complete"`
	// Consistent says that an exact read's shares are a consistent cut.
	Consistent  bool  `json:"consistent"`
	Debt        int64 `json:"debt"`
	MayExceedBy int64 `json:"may_exceed_by"`
	Surplus     int64 `json:"surplus"`
	WrittenOff  int64 `json:"written_off"`
	// WindowEndsMS is left out unless the entity is a rate quota.
	WindowEndsMS int64   `json:"window_ends_ms,omitempty"`
	Shares       []share `json:"shares"`
}

// share has null figures for a site that is not known.
type share struct {
	Site            string  `json:"site"`
	Left            *int64  `json:"left"`
	Offered         *int64  `json:"offered"`
	Net             *int64  `json:"net"`
	Waiting         *int64  `json:"waiting"`
	Redistributions *uint64 `json:"redistributions"`
	Transfers       *uint64 `json:"transfers"`
	AgeMS           *int64  `json:"age_ms"`
	Known           bool    `json:"known"`
}

type page struct {
	Entities      []entity `json:"entities"`
	NextPageToken string   `json:"next_page_token"`
}

type moved struct {
	Entity    string     `json:"entity"`
	Tokens    int64      `json:"tokens"`
	RequestID string     `json:"request_id"`
	Site      string     `json:"site"`
	Left      int64      `json:"left"`
	Lease     *leaseJSON `json:"lease,omitempty"`
	Parked    bool       `json:"parked,omitempty"`
}

type sites struct {
	Cluster    string     `json:"cluster"`
	AnsweredBy string     `json:"answered_by"`
	Sites      []siteJSON `json:"sites"`
}

type siteJSON struct {
	Name        string   `json:"name"`
	Region      string   `json:"region"`
	Address     string   `json:"address"`
	Health      string   `json:"health"`
	RoundTripMS *float64 `json:"round_trip_ms"`
	Oldest      uint32   `json:"oldest_version"`
	Newest      uint32   `json:"newest_version"`
	Refusal     string   `json:"refusal,omitempty"`
	HTTPAddress string   `json:"http_address"`
	// Node runs the site since the take-over Term; unset for a site of a single process.
	Node string `json:"node,omitempty"`
	Term int64  `json:"term,omitempty"`
	// Standbys are the other nodes that follow.
	Standbys uint32 `json:"standbys,omitempty"`
}

func entityJSON(e *samyav1.Entity) entity {
	return entity{
		Name: e.GetName(), Limit: e.GetLimit(), Generation: e.GetGeneration(), Version: e.GetVersion(),
		Parent: e.GetParent(), Children: e.GetChildren(), Per: e.GetPer(), Kind: e.GetKind(), TimeZone: e.GetTimeZone(), Durable: e.Durable, Keys: e.GetKeys(),
	}
}

func changedJSON(r *samyav1.UpdateEntityResponse) changedLimit {
	return changedLimit{entityJSON(r.GetEntity()), r.GetMayExceedBy(), append([]string{}, r.GetMissingSites()...), dryRunJSON(r.GetDryRun())}
}

func cutJSON(r *samyav1.CutEntityResponse) cut {
	return cut{
		entity: entityJSON(r.GetEntity()), Cut: r.GetCut(), InUse: r.GetInUse(), Returning: r.GetReturning(), Leased: r.GetLeased(),
		Surplus: r.GetUsage().GetSurplus(), WrittenOff: r.GetUsage().GetWrittenOff(), BegunMS: r.GetBegunMs(), EndedMS: r.GetEndedMs(),
	}
}

func reconciledJSON(r *samyav1.ReconcileEntityResponse) reconciled {
	missing := append([]string{}, r.GetMissingSites()...)
	return reconciled{changedLimit{entity: entityJSON(r.GetEntity()), MayExceedBy: r.GetMayExceedBy(), MissingSites: missing}, r.GetReturned()}
}

// rescued is the answer to a rescue of an entity.
type rescued struct {
	entity
	Returned     int64    `json:"returned"`
	MissingSites []string `json:"missing_sites"`
}

func rescuedJSON(r *samyav1.RescueEntityResponse) rescued {
	return rescued{entityJSON(r.GetEntity()), r.GetReturned(), append([]string{}, r.GetMissingSites()...)}
}

// reset is the answer to a reset of a rate quota.
type reset struct {
	Returned     int64    `json:"returned"`
	MissingSites []string `json:"missing_sites"`
}

func resetJSON(r *samyav1.ResetEntityResponse) reset {
	return reset{r.GetReturned(), append([]string{}, r.GetMissingSites()...)}
}

func movedEntityJSON(r *samyav1.MoveEntityResponse) entity { return entityJSON(r.GetEntity()) }

func statusJSON(e *samyav1.Entity, u *samyav1.Usage) entityStatus {
	s := entityStatus{
		entity: entityJSON(e), Available: u.GetAvailable(), Acquired: u.GetAcquired(),
		Complete: u.GetComplete(), Consistent: u.GetConsistent(),
		Debt: u.GetDebt(), MayExceedBy: u.GetMayExceedBy(), Surplus: u.GetSurplus(), WrittenOff: u.GetWrittenOff(), WindowEndsMS: u.GetWindowEndsMs(), Shares: []share{},
	}
	if u.GetComplete() {
		s.InTransit = new(u.GetInTransit())
	}
	for _, sh := range u.GetShares() {
		if !sh.GetKnown() {
			s.Shares = append(s.Shares, share{Site: sh.GetSite()})
			continue
		}
		s.Shares = append(s.Shares, share{
			Site: sh.GetSite(), Left: new(sh.GetLeft()), Offered: new(sh.GetOffered()), Net: new(sh.GetNet()),
			Waiting: new(sh.GetWaiting()), Redistributions: new(sh.GetRedistributions()), Transfers: new(sh.GetTransfers()),
			AgeMS: new(sh.GetAge().AsDuration().Milliseconds()), Known: true,
		})
	}
	return s
}

func pageJSON(r *samyav1.ListEntitiesResponse) page {
	p := page{Entities: []entity{}, NextPageToken: r.GetNextPageToken()}
	for _, e := range r.GetEntities() {
		p.Entities = append(p.Entities, entityJSON(e))
	}
	return p
}

func sitesJSON(r *samyav1.ListSitesResponse) sites {
	out := sites{Cluster: r.GetCluster(), AnsweredBy: r.GetAnsweredBy(), Sites: []siteJSON{}}
	for _, s := range r.GetSites() {
		j := siteJSON{
			Name: s.GetName(), Region: s.GetRegion(), Address: s.GetAddress(), HTTPAddress: s.GetHttpAddress(),
			Health: word(s.GetHealth(), "SITE_HEALTH_"),
			Oldest: s.GetOldestVersion(), Newest: s.GetNewestVersion(), Refusal: s.GetRefusal(), Node: s.GetNode(), Term: s.GetTerm(), Standbys: s.GetStandbys(),
		}
		if s.GetRoundTrip() != nil {
			j.RoundTripMS = new(float64(s.GetRoundTrip().AsDuration()) / float64(time.Millisecond))
		}
		out.Sites = append(out.Sites, j)
	}
	return out
}

// members are the sites with a seat.
type members struct {
	Version    uint64       `json:"version"`
	Behind     uint64       `json:"behind"`
	WaitsFor   string       `json:"waits_for"`
	AnsweredBy string       `json:"answered_by"`
	Members    []memberJSON `json:"members"`
}

type memberJSON struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Knows    bool   `json:"knows"`
	Region   string `json:"region"`
	Address  string `json:"address"`
	Health   string `json:"health"`
	WaitsFor string `json:"waits_for"`
	Heir     string `json:"heir,omitempty"`
	// Drain is null unless the site drains and has told it.
	Drain *drainJSON `json:"drain,omitempty"`
	// Rescued says that all that a lost site held is back.
	Rescued bool `json:"rescued,omitempty"`
	// Remembered is null unless the answering site remembers the data of a lost site.
	Remembered *rememberedJSON `json:"remembered,omitempty"`
	// Node runs the site since the take-over Term; unset for a site of a single process.
	Node string `json:"node,omitempty"`
	Term int64  `json:"term,omitempty"`
	// Standbys are the other nodes that follow.
	Standbys uint32 `json:"standbys,omitempty"`
}

// rememberedJSON is a site's memory of another site's data.
type rememberedJSON struct {
	Incarnation string `json:"incarnation"`
	Commit      uint64 `json:"commit"`
	Served      bool   `json:"served"`
}

// drainJSON is what a site that drains still holds.
type drainJSON struct {
	Entities  int64    `json:"entities"`
	Leases    int64    `json:"leases"`
	Claims    int64    `json:"claims"`
	Tokens    int64    `json:"tokens"`
	RecordsMS int64    `json:"records_ms"`
	Unclear   []string `json:"unclear"`
	Emptied   bool     `json:"emptied"`
}

// changedMember is the answer to a change of a site.
type changedMember struct {
	Member  memberJSON `json:"member"`
	Version uint64     `json:"version"`
	DryRun  *dryRun    `json:"dry_run,omitempty"`
}

func memberOf(m *samyav1.Member) memberJSON {
	out := memberJSON{
		Name: m.GetName(), State: word(m.GetState(), "MEMBER_STATE_"), Knows: m.GetKnows(), Region: m.GetRegion(),
		Address: m.GetAddress(), Health: word(m.GetHealth(), "SITE_HEALTH_"), WaitsFor: m.GetWaitsFor(), Heir: m.GetHeir(),
		Node: m.GetNode(), Term: m.GetTerm(), Standbys: m.GetStandbys(),
	}
	if d := m.GetDrain(); d != nil {
		out.Drain = &drainJSON{
			Entities: d.GetEntities(), Leases: d.GetLeases(), Claims: d.GetClaims(), Tokens: d.GetTokens(),
			RecordsMS: d.GetRecords().AsDuration().Milliseconds(), Unclear: append([]string{}, d.GetUnclear()...), Emptied: d.GetEmptied(),
		}
	}
	out.Rescued = m.GetRescued()
	if k := m.GetRemembered(); k != nil {
		out.Remembered = &rememberedJSON{Incarnation: k.GetIncarnation(), Commit: k.GetCommit(), Served: k.GetServed()}
	}
	return out
}

func membersJSON(r *samyav1.ListMembersResponse) members {
	out := members{
		Version: r.GetVersion(), Behind: r.GetBehind(), WaitsFor: r.GetWaitsFor(), AnsweredBy: r.GetAnsweredBy(), Members: []memberJSON{},
	}
	for _, m := range r.GetMembers() {
		out.Members = append(out.Members, memberOf(m))
	}
	return out
}

func changedMemberJSON[R interface {
	GetMember() *samyav1.Member
	GetVersion() uint64
}](r R) changedMember {
	return changedMember{Member: memberOf(r.GetMember()), Version: r.GetVersion()}
}

// drainedJSON is changedMemberJSON for a drain, which may be a dry run.
func drainedJSON(r *samyav1.DrainMemberResponse) changedMember {
	c := changedMemberJSON(r)
	c.DryRun = dryRunJSON(r.GetDryRun())
	return c
}

// word is a value of an enumeration in JSON: its name, without the prefix that all values
// have.
func word(value fmt.Stringer, prefix string) string {
	w := strings.ToLower(strings.TrimPrefix(value.String(), prefix))
	if w == "unspecified" {
		return "unknown"
	}
	return w
}

// leaseJSON is a lease. It ends in RemainingMS milliseconds, by the clock of its site.
type leaseJSON struct {
	Name        string `json:"name"`
	Entity      string `json:"entity"`
	Tokens      int64  `json:"tokens"`
	RemainingMS int64  `json:"remaining_ms"`
	Holder      string `json:"holder"`
	Share       bool   `json:"share,omitempty"`
}

type leasePageJSON struct {
	Leases        []*leaseJSON `json:"leases"`
	NextPageToken string       `json:"next_page_token"`
	Missing       []string     `json:"missing"`
}

type committed struct {
	Lease     string `json:"lease"`
	Tokens    int64  `json:"tokens"`
	Returned  int64  `json:"returned"`
	RequestID string `json:"request_id"`
	Site      string `json:"site"`
}

func leaseOf(l *samyav1.Lease) *leaseJSON {
	if l == nil {
		return nil
	}
	return &leaseJSON{
		Name: l.GetName(), Entity: l.GetEntity(), Tokens: l.GetTokens(),
		RemainingMS: l.GetRemaining().AsDuration().Milliseconds(), Holder: l.GetHolder(),
		Share: l.GetShare(),
	}
}

func renewedJSON(r *samyav1.RenewLeaseResponse) *leaseJSON { return leaseOf(r.GetLease()) }

func leasesJSON(r *samyav1.ListLeasesResponse) leasePageJSON {
	p := leasePageJSON{Leases: []*leaseJSON{}, NextPageToken: r.GetNextPageToken(), Missing: append([]string{}, r.GetMissing()...)}
	for _, l := range r.GetLeases() {
		p.Leases = append(p.Leases, leaseOf(l))
	}
	return p
}

// mode is a decided mode; modeStatus adds the modes of the sites.
type mode struct {
	Protocol string `json:"protocol"`
	Version  uint64 `json:"version"`
}

type modeStatus struct {
	mode
	Complete bool       `json:"complete"`
	Sites    []siteMode `json:"sites"`
}

type siteMode struct {
	Site       string `json:"site"`
	Protocol   string `json:"protocol"`
	Version    uint64 `json:"version"`
	Configured string `json:"configured"`
	Known      bool   `json:"known"`
}

func modeJSON(m *samyav1.Mode) mode {
	return mode{Protocol: m.GetProtocol(), Version: m.GetVersion()}
}

func modesJSON(r *samyav1.GetModeResponse) modeStatus {
	out := modeStatus{mode: modeJSON(r.GetMode()), Complete: r.GetComplete(), Sites: []siteMode{}}
	for _, s := range r.GetSites() {
		out.Sites = append(out.Sites, siteMode{
			Site: s.GetSite(), Protocol: s.GetProtocol(), Version: s.GetVersion(), Configured: s.GetConfigured(), Known: s.GetKnown(),
		})
	}
	return out
}

// clusterVersion is the version of the cluster; versionStatus adds what the sites speak.
type clusterVersion struct {
	Version uint32 `json:"version"`
}

func raisedJSON(r *samyav1.RaiseVersionResponse) clusterVersion {
	return clusterVersion{r.GetVersion()}
}

type versionStatus struct {
	clusterVersion
	Complete bool          `json:"complete"`
	Sites    []siteVersion `json:"sites"`
}

type siteVersion struct {
	Site    string `json:"site"`
	Version uint32 `json:"version"`
	Oldest  uint32 `json:"oldest"`
	Newest  uint32 `json:"newest"`
	Build   string `json:"build"`
	Known   bool   `json:"known"`
	Problem string `json:"problem,omitempty"`
}

func versionsJSON(r *samyav1.GetVersionResponse) versionStatus {
	out := versionStatus{clusterVersion: clusterVersion{r.GetVersion()}, Complete: r.GetComplete(), Sites: []siteVersion{}}
	for _, s := range r.GetSites() {
		out.Sites = append(out.Sites, siteVersion{
			Site: s.GetSite(), Version: s.GetVersion(), Oldest: s.GetOldest(), Newest: s.GetNewest(), Build: s.GetBuild(),
			Known: s.GetKnown(), Problem: s.GetProblem(),
		})
	}
	return out
}

// recovery has the sites that go on after the loss of a majority.
type recovery struct {
	Sites []string `json:"sites"`
}

func recoveryJSON(r *samyav1.RecoverClusterResponse) recovery { return recovery{r.GetSites()} }

// forecasts is the answer to GetForecast or SetForecast.
type forecasts interface {
	GetComplete() bool
	GetSites() []*samyav1.SiteForecast
}

// forecastStatus has the models by which the sites forecast.
type forecastStatus struct {
	Complete bool           `json:"complete"`
	Sites    []siteForecast `json:"sites"`
}

type siteForecast struct {
	Site       string `json:"site"`
	Model      string `json:"model"`
	Configured string `json:"configured"`
	Known      bool   `json:"known"`
	Problem    string `json:"problem,omitempty"`
}

func forecastsJSON[F forecasts](r F) forecastStatus {
	out := forecastStatus{Complete: r.GetComplete(), Sites: []siteForecast{}}
	for _, s := range r.GetSites() {
		out.Sites = append(out.Sites, siteForecast{
			Site: s.GetSite(), Model: s.GetModel(), Configured: s.GetConfigured(), Known: s.GetKnown(), Problem: s.GetProblem(),
		})
	}
	return out
}
