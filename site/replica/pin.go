package replica

import (
	"fmt"

	"github.com/samya-db/samya/site/journal"
)

// First returns the number of the first commit in the log. A log is never empty: the error
// is ErrLost if there is none.
func First(kv KV, keys Keys, wait func(attempt int, failure error) error) (journal.Number, error) {
	from, to := keys.commits(0)
	l := &Log{o: Options{KV: kv, Keys: keys, Wait: wait}}
	found, err := l.read(from, to, 1)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("%w: it has none at all", ErrLost)
	}
	n, ok := keys.number(found[0].Key)
	if !ok {
		return 0, fmt.Errorf("%w: key %.100q", errRecord, found[0].Key)
	}
	return n, nil
}

// Pin has the log keep all commits behind through, while a node without data copies the base
// of another node. now is in Unix milliseconds.
func Pin(kv KV, keys Keys, node string, through journal.Number, now int64, wait func(attempt int, failure error) error) error {
	l := &Log{o: Options{KV: kv, Keys: keys, Node: node, Wait: wait}}
	return l.Tell(Standing{Through: through, Copies: true, Time: now})
}
