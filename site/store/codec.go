package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/avantan"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/wire"
)

func encodeProtocol(s *avantan.State) *storev1.ProtocolState {
	p := &storev1.ProtocolState{
		Applied: uint64(s.Applied), Promised: wire.Ballot(s.Promised), AcceptedAt: wire.Ballot(s.AcceptedAt),
		Accepted: wire.Value(s.Accepted), Pledge: wire.Contribution(s.Pledge), Built: s.Built, Kept: wire.Kept(s.Kept),
	}
	for _, b := range s.Exposures {
		p.Exposures = append(p.Exposures, wire.Ballot(b))
	}
	return p
}

func decodeProtocol(p *storev1.ProtocolState) avantan.State {
	s := avantan.State{
		Applied: avantan.Instance(p.GetApplied()), Promised: wire.BallotOf(p.GetPromised()),
		AcceptedAt: wire.BallotOf(p.GetAcceptedAt()), Accepted: wire.ValueOf(p.GetAccepted()),
		Pledge: wire.ContributionOf(p.GetPledge()), Built: p.GetBuilt(), Kept: wire.KeptOf(p.GetKept()),
	}
	for _, b := range p.GetExposures() {
		s.Exposures = append(s.Exposures, wire.BallotOf(b))
	}
	return s
}

// encodeBooks writes a storev1.Books by hand: every commit has some.
func encodeBooks(dst []byte, b *core.BooksRecord) []byte {
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

func decodeBooks(name string, raw []byte) (core.BooksRecord, error) {
	var p storev1.Books
	if err := proto.Unmarshal(raw, &p); err != nil {
		return core.BooksRecord{}, fmt.Errorf("books of %q: %w", name, err)
	}
	return core.BooksRecord{
		Name: name, Generation: p.GetGeneration(),
		Left: core.Tokens(p.GetLeft()), Net: core.Tokens(p.GetNet()),
	}, nil
}

func encodeEntity(e *core.EntityRecord) ([]byte, error) {
	p := &storev1.EntityState{
		Generation: e.Generation, Initial: int64(e.Initial), Limit: int64(e.Limit), Version: e.Version,
		Protocol: encodeProtocol(&e.Protocol), Star: encodeStar(&e.Star), Moved: e.Moved,
		Transfer: encodeTransfer(&e.Transfer), Fetches: e.Fetches, Surplus: int64(e.Surplus),
		Parent: e.Parent, Shape: e.Shape,
		Debt: int64(e.Debt), DebtSince: uint64(e.DebtSince), Held: uint64(e.Held),
	}
	for _, site := range e.DebtHeard {
		p.DebtHeard = append(p.DebtHeard, string(site))
	}
	for _, r := range e.Results {
		p.Results = append(p.Results, &storev1.LimitResult{
			RequestId: r.RequestID, Body: r.Body, Outcome: uint32(r.Outcome), Limit: int64(r.Limit), Version: r.Version,
			Asked: r.Asked, Keep: r.Keep,
		})
	}
	return proto.Marshal(p)
}

func decodeEntity(name string, raw []byte) (core.EntityRecord, error) {
	var p storev1.EntityState
	if err := proto.Unmarshal(raw, &p); err != nil {
		return core.EntityRecord{}, fmt.Errorf("entity %q: %w", name, err)
	}
	e := core.EntityRecord{
		Name: name, Generation: p.GetGeneration(), Initial: core.Tokens(p.GetInitial()),
		Limit: core.Tokens(p.GetLimit()), Version: p.GetVersion(), Protocol: decodeProtocol(p.GetProtocol()),
		Star: decodeStar(p.GetStar()), Moved: p.GetMoved(), Transfer: decodeTransfer(p.GetTransfer()),
		Fetches: p.GetFetches(), Surplus: core.Tokens(p.GetSurplus()), Parent: p.GetParent(), Shape: p.GetShape(),
		Debt: core.Tokens(p.GetDebt()), DebtSince: avantan.Instance(p.GetDebtSince()), Held: avantan.Instance(p.GetHeld()),
	}
	for _, site := range p.GetDebtHeard() {
		e.DebtHeard = append(e.DebtHeard, core.SiteID(site))
	}
	for _, r := range p.GetResults() {
		e.Results = append(e.Results, core.LimitResult{
			RequestID: r.GetRequestId(), Body: r.GetBody(), Outcome: core.Code(r.GetOutcome()),
			Limit: core.Tokens(r.GetLimit()), Version: r.GetVersion(),
			Asked: r.GetAsked(), Keep: r.GetKeep(),
		})
	}
	return e, nil
}

func encodeCatalogue(c *core.CatalogueRecord) ([]byte, error) {
	return proto.Marshal(&storev1.Catalogue{
		Generation: c.Generation, Numbered: c.Numbered, Protocol: encodeProtocol(&c.Protocol),
		Mode: c.Mode.Protocol, ModeVersion: c.Mode.Version,
	})
}

func decodeCatalogue(raw []byte) (*core.CatalogueRecord, error) {
	var p storev1.Catalogue
	if err := proto.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	return &core.CatalogueRecord{
		Generation: p.GetGeneration(), Numbered: p.GetNumbered(), Protocol: decodeProtocol(p.GetProtocol()),
		Mode: core.ModeRecord{Protocol: p.GetMode(), Version: p.GetModeVersion()},
	}, nil
}

func encodeChange(r *core.ChangeRecord) ([]byte, error) {
	ch := &r.Change
	return proto.Marshal(&storev1.ChangeResult{
		Instance: uint64(r.Instance), Kind: string(ch.Kind), Name: ch.Name, Limit: int64(ch.Limit),
		Expected: ch.Generation, RequestId: ch.RequestID, Body: ch.Body,
		Outcome: uint32(r.Outcome), Generation: r.Generation, Mode: ch.Mode,
		Parent: ch.Parent, Subtree: ch.Subtree, Asked: ch.Asked, NotAfter: ch.NotAfter, Keep: ch.Keep,
	})
}

func decodeChange(number uint64, raw []byte) (core.ChangeRecord, error) {
	var p storev1.ChangeResult
	if err := proto.Unmarshal(raw, &p); err != nil {
		return core.ChangeRecord{}, fmt.Errorf("change %d: %w", number, err)
	}
	return core.ChangeRecord{
		Number: number, Instance: avantan.Instance(p.GetInstance()), Outcome: core.Code(p.GetOutcome()),
		Generation: p.GetGeneration(),
		Change: core.CatalogueChange{
			Kind: core.ChangeKind(p.GetKind()), Name: p.GetName(), Limit: core.Tokens(p.GetLimit()), Mode: p.GetMode(),
			Generation: p.GetExpected(), RequestID: p.GetRequestId(), Body: p.GetBody(),
			Parent: p.GetParent(), Subtree: p.GetSubtree(),
			ChangeTimes: core.ChangeTimes{Asked: p.GetAsked(), NotAfter: p.GetNotAfter(), Keep: p.GetKeep()},
		},
	}, nil
}

// requestFixed is the length of the fields of fixed length in a packed record.
const requestFixed = 16 + 8 + 1

var errBlockCut = errors.New("its records are cut off or out of range")

// packRequests packs records as store.proto describes.
func packRequests(packed []byte, records []core.RequestRecord) []byte {
	for i := range records {
		r := &records[i]
		packed = append(packed, r.Key[:]...)
		packed = binary.BigEndian.AppendUint64(packed, r.Body)
		packed = append(packed, byte(r.Kind)<<4|byte(r.State))
		packed = binary.AppendUvarint(packed, uint64(r.Attempt))
		packed = binary.AppendUvarint(packed, r.Generation)
		packed = binary.AppendUvarint(packed, uint64(r.Tokens))
		packed = binary.AppendVarint(packed, int64(r.Left))
		if r.Kind == core.AllRequest {
			packed = packParts(packed, r.Parts)
		}
	}
	return packed
}

func packParts(packed []byte, parts []core.RecordedPart) []byte {
	packed = binary.AppendUvarint(packed, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		packed = binary.AppendUvarint(packed, uint64(len(p.Entity)))
		packed = append(packed, p.Entity...)
		packed = binary.AppendUvarint(packed, p.Generation)
		packed = binary.AppendUvarint(packed, uint64(p.Tokens))
	}
	return packed
}

// appendBlock writes a storev1.RequestBlock by hand: every commit has one.
func appendBlock(dst []byte, wall int64, packed []byte) []byte {
	dst = appendField(dst, 1, uint64(wall))
	if len(packed) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, 2, protowire.BytesType), packed)
}

// appendTenants appends the tenants of the records of a block: few records have a
// tenant.
func appendTenants(dst []byte, records []core.RequestRecord) []byte {
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

func decodeBlock(sequence uint64, raw []byte) (core.RequestBlock, error) {
	var p storev1.RequestBlock
	if err := proto.Unmarshal(raw, &p); err != nil {
		return core.RequestBlock{}, fmt.Errorf("request block %d: %w", sequence, err)
	}
	packed := p.GetRecords()
	b := core.RequestBlock{
		Sequence: sequence, Wall: p.GetWall(), Records: make([]core.RequestRecord, 0, len(packed)/(requestFixed+4)),
	}
	for len(packed) > 0 {
		r, n := decodeRequest(packed)
		if n <= 0 {
			return core.RequestBlock{}, fmt.Errorf("request block %d: %w", sequence, errBlockCut)
		}
		b.Records = append(b.Records, r)
		packed = packed[n:]
	}
	for _, t := range p.GetTenants() {
		if uint64(t.GetRecord()) >= uint64(len(b.Records)) {
			return core.RequestBlock{}, fmt.Errorf("request block %d: a tenant of record %d of %d", sequence, t.GetRecord(), len(b.Records))
		}
		b.Records[t.GetRecord()].Tenant = t.GetTenant()
	}
	return b, nil
}

// decodeRequest decodes the first of the packed records and returns its length, 0 for
// none.
func decodeRequest(packed []byte) (core.RequestRecord, int) {
	if len(packed) < requestFixed {
		return core.RequestRecord{}, 0
	}
	r := core.RequestRecord{
		Key: core.RequestKey(packed[:16]), Body: binary.BigEndian.Uint64(packed[16:]),
		Kind: core.RequestKind(packed[24] >> 4), State: core.RequestState(packed[24] & 15),
	}
	at, ok := requestFixed, true
	next := func() uint64 {
		v, n := binary.Uvarint(packed[at:])
		at, ok = at+max(n, 0), ok && n > 0
		return v
	}
	attempt := next()
	r.Attempt, r.Generation, r.Tokens = core.Attempt(attempt), next(), core.Tokens(next())
	left, n := binary.Varint(packed[at:])
	if !ok || n <= 0 || attempt > math.MaxUint32 || r.Tokens < 0 {
		return core.RequestRecord{}, 0
	}
	r.Left = core.Tokens(left)
	at += n
	if r.Kind == core.AllRequest {
		parts, n := decodeParts(packed[at:])
		if n <= 0 {
			return core.RequestRecord{}, 0
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
func decodeParts(packed []byte) ([]core.RecordedPart, int) {
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
	var parts []core.RecordedPart
	for range count {
		length := next()
		if !ok || length > uint64(len(packed)-at) {
			return nil, 0
		}
		name := packed[at : at+int(length)] //nolint:gosec // no more than there is
		at += len(name)
		p := core.RecordedPart{Part: core.Part{Entity: string(name)}, Generation: next()}
		p.Tokens = core.Tokens(next()) //nolint:gosec // checked below
		if !ok || p.Tokens < 0 {
			return nil, 0
		}
		parts = append(parts, p)
	}
	return parts, at
}
