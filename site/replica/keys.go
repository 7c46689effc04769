package replica

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/samya-db/samya/site/journal"
)

// Keys are the keys of a site's log.
type Keys struct{ prefix string }

// KeysOf returns the keys of a site of a cluster. Both names have letters, digits and '-'
// alone.
func KeysOf(cluster, site string) Keys { return Keys{"/samya/" + cluster + "/" + site + "/"} }

// Prefix begins all keys of the site.
func (k Keys) Prefix() string { return k.prefix }

func (k Keys) origin() string { return k.prefix + "origin" }
func (k Keys) leader() string { return k.prefix + "leader" }
func (k Keys) beat() string   { return k.prefix + "beat" }
func (k Keys) back() string   { return k.prefix + "back" }

// Signs returns the bounds of the keys of the active node and of its signs of life.
func (k Keys) Signs() (from, to string) { return k.beat(), k.leader() + "\x00" }

func (k Keys) node(name string) string { return k.prefix + "nodes/" + name }

// nodes returns the bounds of the keys of all nodes.
func (k Keys) nodes() (from, to string) { return k.prefix + "nodes/", k.prefix + "nodes0" }

func (k Keys) commit(n journal.Number) string { return fmt.Sprintf("%slog/%016x", k.prefix, uint64(n)) }

// commits returns the bounds of the keys of commits from n on.
func (k Keys) commits(n journal.Number) (from, to string) { return k.commit(n), k.prefix + "log0" }

// number returns the number of a commit's key.
func (k Keys) number(key string) (journal.Number, bool) {
	hex, ok := strings.CutPrefix(key, k.prefix+"log/")
	if !ok || len(hex) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 64)
	return journal.Number(n), err == nil
}

func (k Keys) part(n journal.Number, term int64, i int) string {
	return fmt.Sprintf("%s/%016x/%04x", k.parts(n), uint64(term), i) //nolint:gosec // a revision is positive
}

// parts begins the keys of a commit's parts.
func (k Keys) parts(n journal.Number) string { return fmt.Sprintf("%spart/%016x", k.prefix, uint64(n)) }
