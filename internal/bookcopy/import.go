package bookcopy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// acquireWait is how long an import waits for the tokens of an entity, which lie at all
// sites.
const acquireWait = "30s"

// Done counts the work of an import.
type Done struct {
	// Created counts the entities that were made, Acquired the entities with tokens in
	// use that were acquired, Limited the limits set afterwards. An import that goes on
	// where another ended counts its own work.
	Created  int `json:"created"`
	Acquired int `json:"acquired"`
	Limited  int `json:"limited"`
	// Tokens are the tokens in use in the file, of entities without a parent.
	Tokens int64 `json:"tokens"`
}

// entity is an entity to import.
type entity struct {
	*Entry
	depth int
	// direct are the tokens acquired of the entity itself, inUse with all below it. inUse
	// may be more than the file says: the entities were read at different moments.
	direct, inUse int64
}

// Import makes the entities of a file in a cluster, with their parents and limits, and
// acquires the tokens that are in use.
//
// No entity can grant more than its limit less the tokens in use, at any time: it is made
// with the tokens in use as its limit. These are acquired, and only then the limit is set.
// Of a rate quota the tokens of the window are acquired, unless the window is over.
//
// An import may be repeated until it succeeds: all requests have ids that follow from the
// file. It reads each entity first, so that the ids need not be remembered for long.
func Import(ctx context.Context, api API, b *Books, told func(step string, done, of int)) (Done, error) {
	if n := b.End.Inconsistent; n > 0 {
		return Done{}, fmt.Errorf("%d of %d entities have no consistent read, so their tokens in use are unknown; export again", n, b.End.Entities)
	}
	im := &importing{api: api, id: b.End.SHA256, told: told}
	all, err := plan(b, time.Now())
	if err != nil {
		return Done{}, err
	}
	for _, e := range all {
		if e.depth == 0 {
			im.done.Tokens += e.inUse
		}
	}
	// Parents first.
	if err := im.each(ctx, "creating", all, &im.done.Created, im.create); err != nil {
		return im.done, err
	}
	// Children first: tokens acquired of them are acquired of their parents too.
	slices.Reverse(all)
	if err := im.each(ctx, "acquiring", all, &im.done.Acquired, im.acquire); err != nil {
		return im.done, err
	}
	slices.Reverse(all)
	return im.done, im.each(ctx, "setting limits", all, &im.done.Limited, im.limit)
}

// plan returns the entities of a file, parents first, as of now.
func plan(b *Books, now time.Time) ([]*entity, error) {
	place := b.places()
	all := make([]*entity, len(b.Entries))
	for i := range b.Entries {
		e := &b.Entries[i]
		all[i] = &entity{Entry: e, direct: max(0, e.Acquired)}
		if e.Per != "" && e.WindowEndsMS <= now.UnixMilli() {
			all[i].direct = 0 // the tokens of its window have come back
		}
		for at := e.Parent; at != ""; at = b.Entries[place[at]].Parent {
			all[i].depth++
		}
	}
	byDepth := slices.Clone(all)
	slices.SortStableFunc(byDepth, func(x, y *entity) int { return cmp.Compare(x.depth, y.depth) })
	for _, e := range slices.Backward(byDepth) {
		// By now inUse is the sum over the children.
		e.direct = max(0, e.direct-e.inUse)
		e.inUse += e.direct
		if e.inUse > name.MaxTokens {
			return nil, fmt.Errorf("entity %s has %d tokens in use, at most %d are possible", e.Name, e.inUse, int64(name.MaxTokens))
		}
		if e.Parent != "" {
			all[place[e.Parent]].inUse += e.inUse
		}
	}
	return byDepth, nil
}

// importing is an import under way.
type importing struct {
	api  API
	id   string
	told func(step string, done, of int)
	done Done
}

// each does a step for all entities, at the same time for all of a depth. do reports
// whether there was anything to do.
func (im *importing) each(ctx context.Context, step string, all []*entity, count *int, do func(context.Context, *entity) (bool, error)) error {
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].depth == all[from].depth {
			to++
		}
		for part := range slices.Chunk(all[from:to], pageSize) {
			did := make([]bool, len(part))
			group, ctx := errgroup.WithContext(ctx)
			group.SetLimit(atOnce)
			for i, e := range part {
				group.Go(func() (err error) {
					if did[i], err = do(ctx, e); err != nil {
						return fmt.Errorf("%s %s: %w", step, e.Name, err)
					}
					return nil
				})
			}
			err := group.Wait()
			for _, d := range did {
				if d {
					*count++
				}
			}
			if err != nil {
				return err
			}
			from += len(part)
			if im.told != nil {
				im.told(step, from, len(all))
			}
		}
	}
	return nil
}

// requestID returns the id of a request about an entity: the same in each import of the
// file.
func (im *importing) requestID(step string, e *entity) string {
	sum := sha256.Sum256([]byte(im.id + "\n" + step + "\n" + e.Name))
	return "import-" + hex.EncodeToString(sum[:16])
}

// errOther: an entity of the cluster is not as an import has left it.
var errOther = errors.New("the cluster has another entity of that name, or it was changed meanwhile; import into a new cluster")

// first is the limit with which an entity is made.
func (e *entity) first() int64 {
	if e.inUse > 0 {
		return e.inUse
	}
	return e.Limit
}

func (im *importing) create(ctx context.Context, e *entity) (bool, error) {
	_, err := im.api.Create(ctx, httpapi.Creation{
		Name: e.Name, Limit: e.first(), Parent: e.Parent, Per: e.Per, Kind: e.Kind, TimeZone: e.TimeZone, Durable: e.Durable, Keys: e.Keys, RequestID: im.requestID("create", e),
	})
	if !errors.Is(err, apierr.EntityExists) {
		return err == nil, err
	}
	// An earlier import has made it, or somebody else.
	s, err := consistent(ctx, im.api, e.Name)
	if err != nil {
		return false, err
	}
	if s.Parent != e.Parent || s.Per != e.Per || s.Kind != e.Kind || s.TimeZone != e.TimeZone || s.Limit != e.first() && s.Limit != e.Limit {
		return false, fmt.Errorf("%w: it has limit %d, parent %q, kind %q and period %q", errOther, s.Limit, s.Parent, s.Kind, s.Per)
	}
	return false, nil
}

// acquire acquires the tokens of an entity itself, after the tokens of all below it.
func (im *importing) acquire(ctx context.Context, e *entity) (bool, error) {
	if e.direct == 0 {
		return false, nil
	}
	s, err := consistent(ctx, im.api, e.Name)
	switch {
	case err != nil:
		return false, err
	case !s.Consistent:
		return false, errors.New("the cluster gives no consistent read; see which sites answer with: samya sites")
	case s.Acquired == e.inUse:
		return false, nil
	case e.Per != "" && s.Acquired > 0:
		return false, nil // others acquire already
	case s.Acquired != e.inUse-e.direct:
		return false, fmt.Errorf("%w: %d tokens are out, expected were %d", errOther, s.Acquired, e.inUse-e.direct)
	}
	_, err = im.api.Acquire(ctx, e.Name, httpapi.Request{Tokens: e.direct, Wait: acquireWait, RequestID: im.requestID("acquire", e)})
	return err == nil, err
}

// limit sets the limit of an entity that was made with another.
func (im *importing) limit(ctx context.Context, e *entity) (bool, error) {
	if e.first() == e.Limit {
		return false, nil
	}
	s, err := im.api.ReadEntity(ctx, e.Name, "local", 0)
	if err != nil || s.Limit == e.Limit {
		return false, err
	}
	_, err = im.api.UpdateEntity(ctx, e.Name, httpapi.Change{Limit: e.Limit, RequestID: im.requestID("limit", e)})
	return err == nil, err
}
