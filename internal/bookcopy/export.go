package bookcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

// API is the part of the public API that a copy needs; httpapi.Client has it.
type API interface {
	ListSites(ctx context.Context) (httpapi.Sites, error)
	ListEntities(ctx context.Context, prefix string, pageSize int, pageToken string) (httpapi.Page, error)
	ReadEntity(ctx context.Context, name, consistency string, maxAge time.Duration) (httpapi.Status, error)
	ListLeases(ctx context.Context, holder, entity string, pageSize int, pageToken string) (httpapi.LeasePage, error)
	Create(ctx context.Context, e httpapi.Creation) (httpapi.Entity, error)
	UpdateEntity(ctx context.Context, name string, change httpapi.Change) (httpapi.Changed, error)
	Acquire(ctx context.Context, entity string, r httpapi.Request) (httpapi.Moved, error)
}

const (
	// atOnce is how many calls of a copy are under way at the same time.
	atOnce = 16
	// tries is how often an entity is read until a read is consistent. Each read tries for
	// two seconds itself.
	tries = 3
	// pageSize is the number of entities or leases asked for at once.
	pageSize = 1000
)

// Export writes the books of all entities. told, if not nil, is called with the number of
// entities written so far. Entities that are deleted meanwhile are left out.
func Export(ctx context.Context, api API, to io.Writer, build string, told func(int)) (End, error) {
	sites, err := api.ListSites(ctx)
	if err != nil {
		return End{}, fmt.Errorf("listing the sites: %w", err)
	}
	h := &Header{Books: Version, Cluster: sites.Cluster, Sites: []string{}, Time: time.Now().UTC(), Build: build}
	for _, s := range sites.Sites {
		h.Sites = append(h.Sites, s.Name)
	}
	w, err := newWriter(to, h)
	if err != nil {
		return End{}, fmt.Errorf("writing the books: %w", err)
	}
	leases, missing, err := leased(ctx, api)
	if err != nil {
		return End{}, err
	}
	w.end.LeasesMissing = missing
	for token := ""; ; {
		page, err := api.ListEntities(ctx, "", pageSize, token)
		if err != nil {
			return End{}, fmt.Errorf("listing the entities: %w", err)
		}
		entries, err := exact(ctx, api, page.Entities)
		if err != nil {
			return End{}, err
		}
		for i := range entries {
			e := &entries[i]
			if e.Name == "" {
				continue // deleted
			}
			held := leases[e.Name]
			e.Leases, e.Leased = held.count, held.tokens
			if err := w.entry(e); err != nil {
				return End{}, fmt.Errorf("writing the books: %w", err)
			}
		}
		if told != nil {
			told(w.end.Entities)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	end, err := w.close()
	if err != nil {
		return End{}, fmt.Errorf("writing the books: %w", err)
	}
	return end, nil
}

// exact reads entities; an entity that does not exist any more has no name.
func exact(ctx context.Context, api API, entities []httpapi.Entity) ([]Entry, error) {
	entries := make([]Entry, len(entities))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range entries {
		group.Go(func() (err error) {
			entries[i].Status, err = consistent(ctx, api, entities[i].Name)
			if errors.Is(err, apierr.EntityNotFound) {
				return nil
			}
			return err
		})
	}
	return entries, group.Wait()
}

// consistent reads an entity until the read is a consistent cut, but not for ever.
func consistent(ctx context.Context, api API, entity string) (s httpapi.Status, err error) {
	for range tries {
		if s, err = api.ReadEntity(ctx, entity, "exact", 0); err != nil {
			return httpapi.Status{}, fmt.Errorf("reading %s: %w", entity, err)
		}
		if s.Consistent {
			break
		}
	}
	return s, nil
}

// held are the leases of an entity.
type held struct {
	count  int
	tokens int64
}

// leased adds up the leases of all entities.
func leased(ctx context.Context, api API) (leases map[string]held, missing []string, err error) {
	leases, missing = make(map[string]held), []string{}
	for token := ""; ; {
		page, err := api.ListLeases(ctx, "", "", pageSize, token)
		if err != nil {
			return nil, nil, fmt.Errorf("listing the leases: %w", err)
		}
		for _, l := range page.Leases {
			h := leases[l.Entity]
			leases[l.Entity] = held{h.count + 1, h.tokens + l.Tokens}
		}
		if token = page.NextPageToken; token == "" {
			return leases, append(missing, page.Missing...), nil
		}
	}
}
