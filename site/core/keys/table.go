// Package keys counts the tokens of the keys of a template at a site: addresses, users, API
// keys, as many as come. Each key has the site's share of the template's limit, and needs
// memory only while it has not all of it.
//
// A site knows a single number of a key (see number): of a bucket the time of its filling (the
// generic cell rate algorithm of ATM, ITU-T I.371), of a window the tokens granted in it. A
// key with a larger number has fewer tokens. So the largest number of many keys may stand for
// all of them: then a key may have fewer tokens than it should, never more.
//
// Keys used lately are in a young generation, keys used before in an old generation. When the
// young generation has had its time, or memory is short, the old generation is dropped: its
// largest number stands for every key in neither. A bucket is full, and a window over, by
// the time its generation is dropped, unless memory was short.
//
// Package keys refuses to know the template of a key, and the tokens of a site's share. It
// reads no clock, and holds no lock.
package keys

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Table holds the keys of a template at a site.
type Table struct {
	// period is the time in nanoseconds until an empty bucket is full; 0 for windows.
	period int64
	// share is the number of tokens that a full key has.
	share int64
	// young has the keys used since began, old the keys used before.
	young, old generation
	began      int64
	// unknown is the number of all other keys.
	unknown int64
	// bars are about keys that are not known.
	bars []bar
	// dropped counts the keys that were dropped before they had all their tokens.
	dropped uint64
}

// bar gives a key, or all keys below it, at least a number: another quota has granted tokens
// in their place.
type bar struct {
	key    string
	below  bool
	number int64
}

// maxBars bounds the bars of a table. Where there would be more, all keys that are not known
// have no tokens.
const maxBars = 1000

// generation are keys with their numbers. The numbers count with a share.
type generation struct {
	of map[string]int64
	// worst is the largest number of them.
	worst int64
	// share is the share of the numbers, and until the end of its time at the site. Both are 0
	// for the present share.
	share, until int64
}

// NewBucket returns a table of buckets with a share. They fill within a period, in
// nanoseconds, above 0. At a time, in nanoseconds from 0 on, all are full or all are empty.
func NewBucket(period, now, share int64, full bool) *Table {
	t := &Table{period: period, began: now, share: max(0, share), unknown: now}
	if !full {
		t.unknown += period
	}
	return t
}

// NewWindow returns a table of windows with a share.
func NewWindow(share int64) *Table { return &Table{share: max(0, share)} }

// Len is the number of keys that need memory.
func (t *Table) Len() int { return len(t.young.of) + len(t.old.of) }

// Dropped counts the keys that were dropped before they had all their tokens, as memory was
// short. Keys that are not known have no more tokens than the fewest of them had.
func (t *Table) Dropped() uint64 { return t.dropped }

// Share says how many tokens a full key has from now on. A key keeps the tokens that it has,
// and loses tokens beyond the share.
func (t *Table) Share(now, share int64) {
	share = max(0, share)
	if share == t.share {
		return
	}
	if t.period > 0 {
		t.rotate(now)
		t.old.share, t.old.until = t.share, now
		t.unknown = t.converted(t.unknown, t.share, share, now)
		for i := range t.bars {
			t.bars[i].number = t.converted(t.bars[i].number, t.share, share, now)
		}
	}
	t.share = share
}

// converted is a bucket's number by another share from a time on.
func (t *Table) converted(number, from, to, at int64) int64 {
	lacks := to - min(to, t.level(number, from, at))
	return at + t.cost(lacks, to)
}

// cost is the time until a bucket with a share has gained tokens, up to the share, rounded up.
func (t *Table) cost(tokens, share int64) int64 {
	if tokens >= share {
		return t.period
	}
	high, low := bits.Mul64(uint64(tokens), uint64(t.period)) //nolint:gosec // both are above 0
	low, carry := bits.Add64(low, uint64(share-1), 0)         //nolint:gosec // above the tokens
	cost, _ := bits.Div64(high+carry, low, uint64(share))     //nolint:gosec // below the period, as tokens are below the share
	return int64(cost)                                        //nolint:gosec // as above
}

// level is the number of tokens of a key with a number.
func (t *Table) level(number, share, now int64) int64 {
	if t.period == 0 {
		return max(0, share-number)
	}
	rest := t.period - (number - now)
	switch {
	case number <= now:
		return share
	case rest <= 0:
		return 0
	}
	high, low := bits.Mul64(uint64(rest), uint64(share)) //nolint:gosec // both are above 0
	level, _ := bits.Div64(high, low, uint64(t.period))  //nolint:gosec // the rest is below the period
	return int64(level)                                  //nolint:gosec // below the share
}

// number is all knowledge of a key: of a bucket the time of its filling, of a window the
// tokens granted in it. A larger number is a key with fewer tokens.
func (t *Table) number(key string) int64 {
	if n, ok := t.young.of[key]; ok {
		return n
	}
	n, ok := t.old.of[key]
	if !ok {
		n = t.unknown
		for i := range t.bars {
			if b := &t.bars[i]; b.covers(key) {
				n = max(n, b.number)
			}
		}
		return n
	}
	if t.old.until != 0 {
		return t.converted(n, t.old.share, t.share, t.old.until)
	}
	return n
}

// Left is the number of tokens that a key has.
func (t *Table) Left(now int64, key string) int64 { return t.level(t.number(key), t.share, now) }

// Take takes tokens of a key, at least 1, and reports whether the key has them.
func (t *Table) Take(now int64, key string, tokens int64) bool {
	n := t.number(key)
	if tokens < 1 || tokens > t.level(n, t.share, now) {
		return false
	}
	if t.period == 0 {
		n += tokens
	} else {
		n = max(n, now) + t.cost(tokens, t.share)
	}
	delete(t.old.of, key)
	t.remember(key, n)
	return true
}

// remember notes the number of a key.
func (t *Table) remember(key string, n int64) {
	if t.young.of == nil {
		t.young.of = make(map[string]int64)
	}
	if _, ok := t.young.of[key]; !ok {
		key = strings.Clone(key) // the caller's text may be part of a larger text
	}
	t.young.of[key] = n
	t.young.worst = max(t.young.worst, n)
}

// Until is the time in nanoseconds until a key has tokens by the clock alone; false for
// windows, and for more than the share.
func (t *Table) Until(now int64, key string, tokens int64) (int64, bool) {
	if t.period == 0 || tokens > t.share {
		return 0, false
	}
	// It has them once it lacks no more than the rest of the share.
	return max(0, t.number(key)-now-t.period+t.cost(tokens, t.share)), true
}

// Reset gives a key all its tokens.
func (t *Table) Reset(now int64, key string) {
	delete(t.young.of, key)
	delete(t.old.of, key)
	if full := t.full(now); t.number(key) > full {
		t.remember(key, full)
	}
}

// Bar takes all tokens of a key, and if below is set of all keys below it.
func (t *Table) Bar(now int64, key string, below bool) {
	b := bar{strings.Clone(key), below, math.MaxInt64}
	if t.period > 0 {
		b.number = now + t.period
	}
	for _, g := range []*generation{&t.young, &t.old} {
		maps.DeleteFunc(g.of, func(key string, _ int64) bool { return b.covers(key) })
	}
	if len(t.bars) == maxBars {
		t.unknown, t.bars = max(t.unknown, b.number), nil
		return
	}
	t.bars = append(t.bars, b)
}

// covers reports whether a bar is about a key.
func (b *bar) covers(key string) bool {
	rest, found := strings.CutPrefix(key, b.key)
	return found && (rest == "" || b.below && rest[0] == '/')
}

// Fill gives all keys all their tokens.
func (t *Table) Fill(now int64) {
	t.young, t.old, t.unknown, t.bars = generation{}, generation{}, t.full(now), nil
}

// full is the number of a key with all its tokens.
func (t *Table) full(now int64) int64 {
	if t.period == 0 {
		return 0
	}
	return now
}

// Roll begins a window: all keys have all their tokens.
func (t *Table) Roll() { t.young, t.old, t.unknown, t.bars = generation{}, generation{}, 0, nil }

// Due is the time at which Age has keys to forget; math.MaxInt64 if there are none, or if
// windows do so.
func (t *Table) Due() int64 {
	if t.period == 0 || t.Len() == 0 {
		return math.MaxInt64
	}
	return t.began + t.period
}

// Age forgets the keys that were not used for a period, if it is time: they are full.
func (t *Table) Age(now int64) {
	if now >= t.Due() {
		t.rotate(now)
	}
}

// Shed drops the keys that were not used lately, as memory is short.
func (t *Table) Shed(now int64) { t.rotate(now) }

// rotate drops the old generation, and begins a young one.
func (t *Table) rotate(now int64) {
	if len(t.old.of) > 0 {
		worst := t.old.worst
		if t.old.until != 0 {
			worst = t.converted(worst, t.old.share, t.share, t.old.until)
		}
		if t.unknown = max(t.unknown, worst); t.period == 0 || t.unknown > now {
			t.dropped += uint64(len(t.old.of))
		}
	}
	t.old, t.young, t.began = t.young, generation{}, now
	t.bars = slices.DeleteFunc(t.bars, func(b bar) bool { return t.period > 0 && b.number <= now })
}
