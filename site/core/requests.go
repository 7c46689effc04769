package core

import (
	"cmp"
	"math"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// answer is the answer remembered by a record.
func (r *remembered) answer() answer.Answer {
	switch r.state {
	case stored.Refused:
		if r.tokens > 0 {
			return answer.Answer{Code: answer.ExceedsLimit, Tokens: r.tokens - beyond(0), Left: r.left}
		}
		return answer.Answer{Code: answer.OutOfTokens, Left: r.left}
	case stored.Undone:
		return answer.Answer{Code: answer.Superseded}
	}
	if r.kind == stored.CommitRequest {
		return answer.Answer{Code: answer.OK, Tokens: r.tokens, Returned: r.left}
	}
	return answer.Answer{Code: answer.OK, Tokens: r.tokens, Left: r.left, Parked: r.state == stored.Parked || r.state == stored.Dropped}
}

// record is the record of a request in a new state.
func (r *remembered) record(key attempt.Key, state stored.RequestState, attempt attempt.Number) stored.Request {
	return stored.Request{
		Key: key, Body: r.body, Kind: r.kind, State: state, Attempt: attempt,
		Generation: r.generation, Tokens: r.tokens, Left: r.left,
	}
}

// recordOf is the record of a request with this outcome, which rests on an entity.
func recordOf(r *request, e *entity, state stored.RequestState, tokens, left Tokens) stored.Request {
	q := stored.Request{
		Key: r.key, Body: r.body, Kind: r.kind, State: state, Attempt: r.tries.Number(),
		Generation: e.generation, Tokens: tokens, Left: left,
	}
	if r.parts != nil && state == stored.Ran {
		q.Parts = r.recorded()
	}
	return q
}

// recorded returns the parts with their entities' generations.
func (r *request) recorded() []stored.Part {
	rs := make([]stored.Part, 0, len(r.parts))
	for i, e := range r.named {
		rs = append(rs, stored.Part{Part: input.Part{Entity: e.name, Tokens: r.parts[i].Tokens}, Generation: e.generation})
	}
	return rs
}

// beyond is the smallest number of tokens that exceeds a limit. A record of a refusal for
// the limit has that number; 0 stands for a refusal for want of tokens.
func beyond(limit Tokens) Tokens { return limit + 1 }

// remembered is a record of the table of requests, unpacked.
type remembered struct {
	key              attempt.Key
	body, generation uint64
	tokens, left     Tokens
	attempt          attempt.Number
	// tenant is the slot in which the record is counted.
	tenant portion.Slot
	kind   stored.RequestKind
	state  stored.RequestState
}

// requestTable finds the records of answered requests. Its number of records is bounded;
// records leave it oldest first.
type requestTable struct {
	recall
	// rings are in parts, by session.
	rings *[stripes]rings
	// most bounds what tenants hold in the table, longest the places of a ring.
	most, longest int
	// held counts, for each tenant, the bounded contents of the table: its records, their
	// parts, and the acquires that wait. Only the last record of a key counts.
	held portion.Counts
	// blocks are the blocks that are durable or about to be, oldest first.
	blocks line[rememberedBlock]
	// next is the sequence of the block being gathered.
	next uint64
	// forgotten is the lowest sequence not yet deleted from disk.
	forgotten uint64
	// gathered is the number of records of no ring that were added since the last block.
	gathered int
	// restored says that some restored blocks have no time yet.
	restored bool
	// lost is no earlier than the wall time of any forgotten block.
	lost int64
	// parts are the parts of AllRequest records, by key; partCount is their total number.
	parts     map[attempt.Key][]stored.Part
	partCount int
}

type rememberedBlock struct {
	sequence uint64
	wall     int64
	// at is the time of the answers, or of the restart.
	at Tick
	// records is the number of records not yet forgotten.
	records int
}

const (
	// forgetEvery is how many blocks are deleted from disk at once: deleting is
	// cheap in bulk, and a late deletion harms nobody.
	forgetEvery = 64
	// forgetMost is the number of records forgotten with a transaction, beside twice the
	// number of its own records.
	forgetMost = 1024
)

func newRequestTable(most, longest int) requestTable {
	return requestTable{
		recall: recall{index: newKeyIndex()}, rings: newRings(), most: most, longest: longest, next: 1, lost: math.MinInt64,
		parts: make(map[attempt.Key][]stored.Part),
	}
}

// restore takes up blocks from the disk, one after the other. Records forgotten before the
// first block were answered before it too, except for the skew of a clock set back. The
// error is that of reading the blocks.
func (t *requestTable) restore(from *stored.Restored, skew int64, tenants *tenantsOf) error {
	err := from.EachBlock(func(b *stored.Block) error {
		t.restored = true
		if t.forgotten == 0 {
			t.forgotten = b.Sequence
			if b.Sequence > 1 {
				t.lost = b.Wall + skew
			}
		}
		t.next = b.Sequence
		t.remember(b, tenants)
		t.next++
		return nil
	})
	t.forgotten = cmp.Or(t.forgotten, t.next)
	return err
}

// lasts is the time until the last record is forgotten, at least 1, if records are kept
// for keep.
func (t *requestTable) lasts(now, keep Tick) Tick {
	last := now
	if t.blocks.len() > 0 {
		last = max(1, t.blocks.at(t.blocks.end-1).at)
	}
	return max(1, last+keep-min(now, last+keep))
}

func (t *requestTable) find(key attempt.Key) (remembered, bool) {
	if key.InSession() {
		if _, at := t.inRing(&key); at != nil {
			return at.unpack(at), true
		}
		if !t.inRecall(&key) {
			return remembered{}, false
		}
	}
	number, found := t.recall.find(&key)
	if !found {
		return remembered{}, false
	}
	return t.get(number), true
}

// add makes a record findable and counts it in a tenant's slot, where the caller has counted
// 1 for it. The caller gathers the block that persists the record and hands it to seal.
func (t *requestTable) add(r *stored.Request, tenant portion.Slot) {
	m := rememberedOf(r, tenant)
	if r.Key.InSession() {
		if t.addToRing(m, r.Parts) {
			return
		}
		t.takeOut(&r.Key)
	}
	t.gathered++
	if before, replaced := t.recall.add(m); replaced {
		t.leave(&before)
	} else if of, _, ok := r.Key.Session(); ok {
		t.ringsOf(of).stray(of, 1)
	}
	if len(r.Parts) > 0 {
		t.keepParts(r.Key, r.Parts, tenant)
	}
}

func rememberedOf(r *stored.Request, tenant portion.Slot) *remembered {
	return &remembered{
		key: r.Key, body: r.Body, generation: r.Generation, tokens: r.Tokens, left: r.Left,
		attempt: r.Attempt, kind: r.Kind, state: r.State, tenant: tenant,
	}
}

// addNew is add, unless the table has a record of that key, or the client has acknowledged the
// request.
func (t *requestTable) addNew(r *stored.Request, tenant portion.Slot) bool {
	if of, _, ok := r.Key.Session(); ok {
		if _, found := t.find(r.Key); found || t.acknowledged(&r.Key) {
			return false
		}
		m := rememberedOf(r, tenant)
		if t.addToRing(m, r.Parts) {
			return true
		}
		t.ringsOf(of).stray(of, 1)
	}
	if !t.recall.addNew(rememberedOf(r, tenant)) {
		return false
	}
	t.gathered++
	if len(r.Parts) > 0 {
		t.keepParts(r.Key, r.Parts, tenant)
	}
	return true
}

// keepParts keeps the parts of the last record of a key.
func (t *requestTable) keepParts(key attempt.Key, parts []stored.Part, tenant portion.Slot) {
	t.parts[key] = parts
	t.partCount += len(parts)
	t.held.More(tenant, len(parts))
}

// dropParts drops the parts of a record.
func (t *requestTable) dropParts(r *remembered) {
	parts := len(t.parts[r.key])
	delete(t.parts, r.key)
	t.partCount -= parts
	t.held.Give(r.tenant, parts)
}

// leave stops counting a record that is no longer the last of its key, and drops its
// parts.
func (t *requestTable) leave(r *remembered) {
	if r.kind == stored.AllRequest {
		t.dropParts(r)
	}
	t.held.Give(r.tenant, 1)
}

// seal notes the gathered records for expiry, and numbers the block of the durable ones.
func (t *requestTable) seal(b *stored.Block, now input.Now) {
	records := t.gathered
	if t.gathered = 0; records == 0 && len(b.Records) == 0 {
		return
	}
	noted := rememberedBlock{sequence: t.next, wall: now.Wall, at: now.Tick, records: records}
	if len(b.Records) > 0 {
		b.Sequence, b.Wall = t.next, now.Wall
		t.tellRings(b)
		t.next++
	}
	*t.blocks.push() = noted
}

func (t *requestTable) remember(b *stored.Block, tenants *tenantsOf) {
	t.restoreRings(b)
	for i := range b.Records {
		t.add(&b.Records[i], tenants.take(&t.held, &b.Records[i]))
	}
	*t.blocks.push() = rememberedBlock{sequence: b.Sequence, wall: b.Wall, records: t.gathered}
	t.gathered = 0
}

// expire forgets at most `most` records, answered or restored more than keep ago. It
// returns the sequence below which blocks are to be deleted from disk, or 0 if a deletion
// is not yet worthwhile.
func (t *requestTable) expire(now, keep Tick, most int) uint64 {
	var forgotten [forgetAtOnce]remembered
	if t.restored {
		t.restored = false
		for n := t.blocks.begin; n != t.blocks.end; n++ {
			if b := t.blocks.at(n); b.at == 0 {
				b.at = now
			}
		}
	}
	for t.blocks.len() > 0 {
		b := t.blocks.at(t.blocks.begin)
		if b.at+keep >= now {
			break
		}
		t.lost = max(t.lost, b.wall)
		for b.records > 0 && most > 0 {
			n := min(b.records, most, forgetAtOnce)
			gone := t.forget(n, &forgotten)
			for i := range gone {
				t.leave(&gone[i])
				if of, _, ok := gone[i].key.Session(); ok {
					t.ringsOf(of).stray(of, -1)
				}
			}
			b.records -= n
			most -= n
		}
		if b.records > 0 {
			break
		}
		t.blocks.pop()
	}
	t.expireRings(most)
	// The last block stays on disk: its number is never used again, and its time bounds
	// the time of earlier answers.
	oldest := t.next - 1
	if t.blocks.len() > 0 {
		oldest = min(oldest, t.blocks.at(t.blocks.begin).sequence)
	}
	if oldest < t.forgotten+forgetEvery {
		return 0
	}
	t.forgotten = oldest
	return oldest
}

func (t *requestTable) len() int {
	records, _ := t.inRings()
	return t.index.len + records
}

// inRings is the number of records in rings, and of all places of rings.
func (t *requestTable) inRings() (records, places int) {
	for i := range t.rings {
		records, places = records+t.rings[i].records, places+t.rings[i].places
	}
	return records, places
}

// size is the bounded size of the table: a part takes about as much memory as a record.
func (t *requestTable) size() int {
	_, places := t.inRings()
	return t.index.len + places + t.partCount
}
