// Package rescue works out, from the data of a site that was written off, the tokens that
// the site held of each entity, and whether the data is the latest. It decides nothing and
// asks nobody: the caller reads the data, asks the members, and has the sites bring the
// tokens back. It refuses data if a member remembers later data.
package rescue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// Tokens counts tokens.
type Tokens = avantan.Tokens

// Estate is all that the site held of an entity.
type Estate struct {
	Name       string
	Generation uint64
	// Net are the tokens out through the site, without tokens of entities below. Held are
	// the tokens left and out, with tokens of entities below.
	Net, Held Tokens
	// Leases counts the leases that may not have ended yet. Leased are the tokens in Net that
	// leases hold, by their ends; the first part are leases that have ended.
	Leases int
	Leased []input.Leased
}

// Estates are all that the data holds of each entity by generation, at a wall time in
// milliseconds since the Unix epoch. skew bounds by how many milliseconds clocks differ.
func Estates(data *stored.Restored, now, skew int64) map[uint64]*Estate {
	all := make(map[uint64]*Estate, len(data.Entities))
	nets := make(map[string]Tokens, len(data.Books))
	for _, b := range data.Books {
		all[b.Generation] = &Estate{Name: b.Name, Generation: b.Generation, Net: b.Net, Held: b.Left + b.Net}
		nets[b.Name] = b.Net
	}
	rated, parents := make(map[uint64]bool), make(map[uint64]uint64)
	for i := range data.Entities {
		rated[data.Entities[i].Generation] = !data.Entities[i].Rate.Terms.None()
		parents[data.Entities[i].Generation] = data.Entities[i].Parent
	}
	// An allocation's tokens are out of the next allocation above, too; see core.
	above := func(generation uint64) *Estate {
		for generation = parents[generation]; rated[generation]; {
			generation = parents[generation]
		}
		return all[generation]
	}
	for i := range data.Entities {
		if e := &data.Entities[i]; !rated[e.Generation] {
			if parent := above(e.Generation); parent != nil {
				parent.Net -= nets[e.Name]
			}
		}
	}
	leases := make(map[uint64][]input.Leased)
	for i := range data.Leases {
		l := &data.Leases[i]
		of := all[l.Generation]
		// Tokens of a rate quota come back by the clock, whatever leases say: those of the next
		// allocation wait for the end of a lease. Leases of share hold tokens of a rate quota.
		if of != nil && rated[l.Generation] && !l.Share {
			of = above(l.Generation)
		}
		if of != nil && l.Tokens > 0 {
			leases[of.Generation] = append(leases[of.Generation], input.Leased{Tokens: l.Tokens, Until: max(1, endOf(data.Clock, l))})
		}
	}
	for generation, list := range leases {
		e := all[generation]
		for _, l := range list {
			if l.Until+2*skew > now {
				e.Leases++
			}
		}
		e.Leased = parts(list, now-2*skew)
	}
	return all
}

// endOf is the wall time of the end of a lease. A lease ends by the site's own time, of
// which the clock tells the wall time at the last commit with leases.
func endOf(clock *stored.Clock, l *stored.Lease) int64 {
	if clock == nil {
		return l.Expires
	}
	return clock.Wall + min(l.Expires-clock.Own, int64(l.TTL))
}

// parts puts leases together: leases that have ended by a time, and the others in the order
// of their ends. The tokens of a part come back with its last lease.
func parts(list []input.Leased, ended int64) []input.Leased {
	slices.SortFunc(list, func(a, b input.Leased) int { return cmp.Compare(a.Until, b.Until) })
	live, _ := slices.BinarySearchFunc(list, ended, func(l input.Leased, t int64) int {
		if l.Until <= t {
			return -1
		}
		return 1
	})
	var out []input.Leased
	out = join(out, list[:live])
	list = list[live:]
	for room := input.MaxLeased - len(out); len(list) > 0; room-- {
		n := (len(list) + room - 1) / room
		out = join(out, list[:n])
		list = list[n:]
	}
	return out
}

// join appends a part with all leases of a list.
func join(parts, list []input.Leased) []input.Leased {
	if len(list) == 0 {
		return parts
	}
	sum := input.Leased{Until: list[len(list)-1].Until}
	for _, l := range list {
		sum.Tokens += l.Tokens
	}
	return append(parts, sum)
}

// Mark names data at a commit.
type Mark struct {
	Incarnation, Commit uint64
}

// Memory is a member's memory of the lost site's data; the zero mark for nothing.
type Memory struct {
	Member string
	Mark
	// Served says that the data has told of a commit.
	Served bool
}

// StaleError says that a member remembers later data of the site, or other data.
type StaleError struct {
	Mine  Mark
	Known Memory
}

// Error implements error.
func (e *StaleError) Error() string {
	if e.Known.Incarnation != e.Mine.Incarnation {
		return fmt.Sprintf("member %s remembers other data of the site, %016x at commit %d, and not %016x",
			e.Known.Member, e.Known.Incarnation, e.Known.Commit, e.Mine.Incarnation)
	}
	return fmt.Sprintf("member %s remembers the site's data at commit %d, and the directory is at commit %d: it is an older copy",
		e.Known.Member, e.Known.Commit, e.Mine.Commit)
}

// UnknownError says that no member remembers the data: nobody can tell whether it is the
// latest.
type UnknownError struct{ Members []string }

// Error implements error.
func (e *UnknownError) Error() string {
	return "no member remembers the site's data (asked: " + strings.Join(e.Members, ", ") + "): nobody can tell whether it is the latest"
}

// Latest returns an error unless the data is the latest that any member remembers, and
// some member remembers it.
func Latest(mine Mark, members []Memory) error {
	known := false
	var asked []string
	for _, m := range members {
		same := m.Incarnation == mine.Incarnation
		if same && m.Commit > mine.Commit || !same && m.Served {
			return &StaleError{Mine: mine, Known: m}
		}
		known = known || same && m.Mark != (Mark{})
		asked = append(asked, m.Member)
	}
	if !known {
		return &UnknownError{Members: asked}
	}
	return nil
}
