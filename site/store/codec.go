package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/versions"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func encodeProtocol(s *avantan.State) *storev1.ProtocolState {
	return &storev1.ProtocolState{
		Applied: uint64(s.Applied), Promised: wire.Ballot(s.Promised), AcceptedAt: wire.Ballot(s.AcceptedAt),
		Accepted: wire.Value(s.Accepted), Pledge: wire.Contribution(s.Pledge), Built: s.Built, Kept: wire.Kept(s.Kept),
		Exposures: wire.All(s.Exposures, wire.Ballot),
	}
}

func decodeProtocol(p *storev1.ProtocolState) avantan.State {
	return avantan.State{
		Applied: avantan.Instance(p.GetApplied()), Promised: wire.BallotOf(p.GetPromised()),
		AcceptedAt: wire.BallotOf(p.GetAcceptedAt()), Accepted: wire.ValueOf(p.GetAccepted()),
		Pledge: wire.ContributionOf(p.GetPledge()), Built: p.GetBuilt(), Kept: wire.KeptOf(p.GetKept()),
		Exposures: wire.All(p.GetExposures(), wire.BallotOf),
	}
}

// encodeBooks writes a storev1.Books by hand: every commit has some.
func encodeBooks(dst []byte, b *stored.Books) []byte {
	dst = appendField(dst, 1, b.Generation)
	dst = appendField(dst, 2, protowire.EncodeZigZag(int64(b.Left)))
	return appendField(dst, 3, protowire.EncodeZigZag(int64(b.Net)))
}

// appendField appends a number, which is left out if it is 0.
func appendField(dst []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), v)
}

func decodeBooks(name string, raw []byte) (stored.Books, error) {
	var p storev1.Books
	if err := proto.Unmarshal(raw, &p); err != nil {
		return stored.Books{}, fmt.Errorf("books of %q: %w", name, err)
	}
	return stored.Books{
		Name: name, Generation: p.GetGeneration(),
		Left: core.Tokens(p.GetLeft()), Net: core.Tokens(p.GetNet()),
	}, nil
}

func encodeEntity(e *stored.Entity) ([]byte, error) {
	p := &storev1.EntityState{
		Generation: e.Generation, Initial: int64(e.Initial), Limit: int64(e.Limit), Version: e.Version,
		Protocol: encodeProtocol(&e.Protocol), Star: encodeStar(&e.Star), Moved: e.Moved,
		Transfer: encodeTransfer(&e.Transfer), Handoff: encodeHandoff(&e.Handoff), Fetches: e.Fetches, Surplus: int64(e.Surplus),
		Parent: e.Parent, Shape: e.Shape, WrittenOff: int64(e.WrittenOff), Born: uint32(e.Born), Voters: uint32(e.Voters), Appraised: uint32(e.Appraised),
		Returned: uint32(e.Returned), Debt: int64(e.Debt), DebtSince: uint64(e.DebtSince), Held: uint64(e.Held),
	}
	p.DebtHeard, p.Rescued = wire.Names(e.DebtHeard), wire.Names(e.Rescued)
	p.Rate, p.Window, p.Late, p.Opens = encodeTerms(&e.Rate.Terms), e.Rate.Window, int64(e.Rate.Late), e.Rate.Opens
	p.EndedIn, p.Ended, p.EndedBefore = e.Rate.Ended.In, int64(e.Rate.Ended.Last), int64(e.Rate.Ended.Before)
	for _, r := range e.Results {
		p.Results = append(p.Results, &storev1.LimitResult{
			RequestId: r.RequestID, Body: r.Body, Outcome: uint32(r.Outcome), Limit: int64(r.Limit), Version: r.Version,
			Asked: r.Asked, Keep: r.Keep, Returned: int64(r.Returned),
		})
	}
	return proto.Marshal(p)
}

func decodeEntity(name string, raw []byte) (stored.Entity, error) {
	var p storev1.EntityState
	if err := proto.Unmarshal(raw, &p); err != nil {
		return stored.Entity{}, fmt.Errorf("entity %q: %w", name, err)
	}
	if most := max(p.GetBorn(), p.GetVoters(), p.GetAppraised(), p.GetReturned()); most > math.MaxUint16 {
		return stored.Entity{}, fmt.Errorf("entity %q: version %d of the roster, at most %d", name, most, math.MaxUint16)
	}
	e := stored.Entity{
		Born: uint16(p.GetBorn()), Voters: uint16(p.GetVoters()), Appraised: uint16(p.GetAppraised()), Returned: uint16(p.GetReturned()),
		Name: name, Generation: p.GetGeneration(), Initial: core.Tokens(p.GetInitial()),
		Limit: core.Tokens(p.GetLimit()), Version: p.GetVersion(), Protocol: decodeProtocol(p.GetProtocol()),
		Star: decodeStar(p.GetStar()), Moved: p.GetMoved(), Transfer: decodeTransfer(p.GetTransfer()), Handoff: decodeHandoff(p.GetHandoff()),
		Fetches: p.GetFetches(), Surplus: core.Tokens(p.GetSurplus()), Parent: p.GetParent(), Shape: p.GetShape(),
		WrittenOff: core.Tokens(p.GetWrittenOff()),
		Debt:       core.Tokens(p.GetDebt()), DebtSince: avantan.Instance(p.GetDebtSince()), Held: avantan.Instance(p.GetHeld()),
	}
	e.DebtHeard, e.Rescued = wire.SitesOf(p.GetDebtHeard()), wire.SitesOf(p.GetRescued())
	e.Rate = stored.Rate{Terms: decodeTerms(p.GetRate()), Window: p.GetWindow(), Late: core.Tokens(p.GetLate()), Opens: p.GetOpens()}
	e.Rate.Ended = stored.Ended{In: p.GetEndedIn(), Last: core.Tokens(p.GetEnded()), Before: core.Tokens(p.GetEndedBefore())}
	for _, r := range p.GetResults() {
		e.Results = append(e.Results, stored.LimitResult{
			RequestID: r.GetRequestId(), Body: r.GetBody(), Outcome: answer.Code(r.GetOutcome()),
			Limit: core.Tokens(r.GetLimit()), Version: r.GetVersion(),
			Asked: r.GetAsked(), Keep: r.GetKeep(), Returned: core.Tokens(r.GetReturned()),
		})
	}
	return e, nil
}

func encodeTerms(t *rates.Terms) *storev1.Rate {
	if t.None() {
		return nil
	}
	return &storev1.Rate{Kind: string(t.Kind), Count: t.Count, Unit: string(t.Unit), Zone: t.Zone, Volatile: t.Volatile, Keys: t.Keys}
}

func decodeTerms(p *storev1.Rate) rates.Terms {
	return rates.Terms{Kind: rates.Kind(p.GetKind()), Count: p.GetCount(), Unit: rates.Unit(p.GetUnit()), Zone: p.GetZone(), Volatile: p.GetVolatile(), Keys: p.GetKeys()}
}

func encodeCatalogue(c *stored.Catalogue) ([]byte, error) {
	return proto.Marshal(&storev1.Catalogue{
		Generation: c.Generation, Numbered: c.Numbered, Protocol: encodeProtocol(&c.Protocol),
		Mode: c.Mode.Protocol, ModeVersion: c.Mode.Version, Roster: encodeRoster(&c.Roster), SettledIn: c.SettledIn,
		Version: uint32(c.Version), Destroyed: wire.Names(c.Destroyed),
	})
}

func encodeRoster(r *stored.Roster) *storev1.Roster {
	if r.Version == 0 {
		return nil
	}
	p := &storev1.Roster{Version: uint32(r.Version), Changed: r.Changed, Losses: uint32(r.Losses)}
	for i := range r.Seats {
		s := &r.Seats[i]
		p.Seats = append(p.Seats, &storev1.Seat{
			Site: string(s.Site), State: string(s.State), Since: uint64(s.Since), Incarnation: uint64(s.Incarnation), Heir: string(s.Heir),
			Lost: uint32(s.Lost), Rescued: s.Rescued, Unsettled: s.Unsettled, Votes: wire.All(s.Votes, func(v uint16) uint32 { return uint32(v) }),
		})
	}
	return p
}

// decodeRoster reads a roster. The core checks it.
func decodeRoster(p *storev1.Roster) (stored.Roster, error) {
	if p.GetVersion() > math.MaxUint16 {
		return stored.Roster{}, fmt.Errorf("roster: version %d, at most %d", p.GetVersion(), math.MaxUint16)
	}
	if p.GetLosses() > p.GetVersion() {
		return stored.Roster{}, fmt.Errorf("roster: a loss at version %d, of %d", p.GetLosses(), p.GetVersion())
	}
	if p.GetVersion() == 0 && (p.GetChanged() != 0 || len(p.GetSeats()) > 0) {
		return stored.Roster{}, errors.New("roster: seats without a version")
	}
	r := stored.Roster{Version: uint16(p.GetVersion()), Changed: p.GetChanged(), Losses: uint16(p.GetLosses())}
	for _, s := range p.GetSeats() {
		if s.GetLost() > p.GetLosses() {
			return stored.Roster{}, fmt.Errorf("roster: site %q was lost at version %d, the last loss was at %d", s.GetSite(), s.GetLost(), p.GetLosses())
		}
		seat := stored.Seat{
			Site: core.SiteID(s.GetSite()), State: stored.SeatState(s.GetState()), Since: avantan.Instance(s.GetSince()),
			Incarnation: message.Incarnation(s.GetIncarnation()), Heir: core.SiteID(s.GetHeir()), Lost: uint16(s.GetLost()), Rescued: s.GetRescued(), Unsettled: s.GetUnsettled(),
		}
		for _, v := range s.GetVotes() {
			if v > p.GetVersion() {
				return stored.Roster{}, fmt.Errorf("roster: site %q votes from version %d on, of %d", s.GetSite(), v, p.GetVersion())
			}
			seat.Votes = append(seat.Votes, uint16(v))
		}
		r.Seats = append(r.Seats, seat)
	}
	return r, nil
}

func decodeCatalogue(raw []byte) (*stored.Catalogue, error) {
	var p storev1.Catalogue
	if err := proto.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	roster, err := decodeRoster(p.GetRoster())
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	return &stored.Catalogue{
		Roster: roster, SettledIn: p.GetSettledIn(), Destroyed: wire.SitesOf(p.GetDestroyed()),
		Generation: p.GetGeneration(), Numbered: p.GetNumbered(), Protocol: decodeProtocol(p.GetProtocol()),
		Mode:    answer.DecidedMode{Protocol: p.GetMode(), Version: p.GetModeVersion()},
		Version: versions.Version(p.GetVersion()),
	}, nil
}

func encodeChange(r *stored.Change) ([]byte, error) {
	ch := &r.Change
	return proto.Marshal(&storev1.ChangeResult{
		Instance: uint64(r.Instance), Kind: string(ch.Kind), Name: ch.Name, Limit: int64(ch.Limit),
		Expected: ch.Generation, RequestId: ch.RequestID, Body: ch.Body,
		Outcome: uint32(r.Outcome), Generation: r.Generation, Mode: ch.Mode,
		Parent: ch.Parent, Subtree: ch.Subtree, Asked: ch.Asked, NotAfter: ch.NotAfter, Keep: ch.Keep, Incarnation: ch.Incarnation, Heir: string(ch.Heir),
		Version: uint32(ch.Version), Begin: uint32(ch.Begin), Rate: encodeTerms(&ch.Rate),
	})
}

func decodeChange(number uint64, raw []byte) (stored.Change, error) {
	var p storev1.ChangeResult
	if err := proto.Unmarshal(raw, &p); err != nil {
		return stored.Change{}, fmt.Errorf("change %d: %w", number, err)
	}
	return stored.Change{
		Number: number, Instance: avantan.Instance(p.GetInstance()), Outcome: answer.Code(p.GetOutcome()),
		Generation: p.GetGeneration(),
		Change: stored.CatalogueChange{
			Kind: input.ChangeKind(p.GetKind()), Name: p.GetName(), Limit: core.Tokens(p.GetLimit()), Mode: p.GetMode(),
			Generation: p.GetExpected(), RequestID: p.GetRequestId(), Body: p.GetBody(),
			Parent: p.GetParent(), Subtree: p.GetSubtree(), Incarnation: p.GetIncarnation(), Heir: core.SiteID(p.GetHeir()),
			Version: versions.Version(p.GetVersion()), Begin: versions.Version(p.GetBegin()), Rate: decodeTerms(p.GetRate()),
			ChangeTimes: stored.ChangeTimes{Asked: p.GetAsked(), NotAfter: p.GetNotAfter(), Keep: p.GetKeep()},
		},
	}, nil
}

// requestFixed is the length of the fields of fixed length in a packed record.
const requestFixed = 16 + 8 + 1

var errBlockCut = errors.New("its records are cut off or out of range")

// appendBlock writes a storev1.RequestBlock by hand: every commit has one.
func appendBlock(dst []byte, b *stored.Block, packed []byte) []byte {
	dst = appendField(dst, 1, uint64(b.Wall))
	if len(packed) > 0 {
		dst = protowire.AppendBytes(protowire.AppendTag(dst, 2, protowire.BytesType), packed)
	}
	return appendSessions(appendTenants(dst, b.Records), b.Sessions)
}

// appendTenants appends the tenants of the records of a block: few records have a
// tenant.
func appendTenants(dst []byte, records []stored.Request) []byte {
	for i := range records {
		tenant := records[i].Tenant
		if tenant == "" {
			continue
		}
		of := appendField(nil, 1, uint64(i))
		of = protowire.AppendString(protowire.AppendTag(of, 2, protowire.BytesType), tenant)
		dst = protowire.AppendBytes(protowire.AppendTag(dst, 3, protowire.BytesType), of)
	}
	return dst
}

func decodeBlock(sequence uint64, raw []byte) (stored.Block, error) {
	var b stored.Block
	if err := readBlock(&b, sequence, raw); err != nil {
		return stored.Block{}, err
	}
	return b, nil
}

// readBlock is decodeBlock into a block whose memory is used again.
func readBlock(b *stored.Block, sequence uint64, raw []byte) error {
	var p storev1.RequestBlock
	if err := proto.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("request block %d: %w", sequence, err)
	}
	packed := p.GetRecords()
	*b = stored.Block{
		Sequence: sequence, Wall: p.GetWall(), Records: slices.Grow(b.Records[:0], len(packed)/(requestFixed+4)),
		Sessions: b.Sessions[:0],
	}
	for len(packed) > 0 {
		r, n := decodeRequest(packed)
		if n <= 0 {
			return fmt.Errorf("request block %d: %w", sequence, errBlockCut)
		}
		b.Records = append(b.Records, r)
		packed = packed[n:]
	}
	for _, t := range p.GetTenants() {
		if uint64(t.GetRecord()) >= uint64(len(b.Records)) {
			return fmt.Errorf("request block %d: a tenant of record %d of %d", sequence, t.GetRecord(), len(b.Records))
		}
		b.Records[t.GetRecord()].Tenant = t.GetTenant()
	}
	return readSessions(b, p.GetSessions())
}

// decodeRequest decodes the first of the packed records and returns its length, 0 for
// none.
func decodeRequest(packed []byte) (stored.Request, int) {
	if len(packed) < requestFixed {
		return stored.Request{}, 0
	}
	r := stored.Request{
		Key: attempt.Key(packed[:16]), Body: binary.BigEndian.Uint64(packed[16:]),
		Kind: stored.RequestKind(packed[24] >> 4), State: stored.RequestState(packed[24] & 15),
	}
	at, ok := requestFixed, true
	next := func() uint64 {
		v, n := binary.Uvarint(packed[at:])
		at, ok = at+max(n, 0), ok && n > 0
		return v
	}
	number := next()
	r.Attempt, r.Generation, r.Tokens = attempt.Number(number), next(), core.Tokens(next())
	left, n := binary.Varint(packed[at:])
	if !ok || n <= 0 || number > math.MaxUint32 || r.Tokens < 0 {
		return stored.Request{}, 0
	}
	r.Left = core.Tokens(left)
	at += n
	if r.Kind == stored.AllRequest {
		parts, n := decodeParts(packed[at:])
		if n <= 0 {
			return stored.Request{}, 0
		}
		r.Parts = parts
		at += n
	}
	return r, at
}

// partLeast is the least length of a packed part.
const partLeast = 3

// decodeParts decodes the parts of a request of several entities, and returns
// their length, 0 for none.
func decodeParts(packed []byte) ([]stored.Part, int) {
	at, ok := 0, true
	next := func() uint64 {
		v, n := binary.Uvarint(packed[at:])
		at, ok = at+max(n, 0), ok && n > 0
		return v
	}
	count := next()
	if !ok || count > uint64(len(packed)-at)/partLeast {
		return nil, 0
	}
	var parts []stored.Part
	for range count {
		length := next()
		if !ok || length > uint64(len(packed)-at) {
			return nil, 0
		}
		name := packed[at : at+int(length)] //nolint:gosec // no more than there is
		at += len(name)
		p := stored.Part{Part: input.Part{Entity: string(name)}, Generation: next()}
		p.Tokens = core.Tokens(next()) //nolint:gosec // checked below
		if !ok || p.Tokens < 0 {
			return nil, 0
		}
		parts = append(parts, p)
	}
	return parts, at
}
