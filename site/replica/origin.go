package replica

import (
	"encoding/json"
	"fmt"

	"github.com/samya-db/samya/site/journal"
)

// Origin names the owner of a log. The first node of a site writes the origin, for ever.
type Origin struct {
	// Cluster and Site are the names of the owner.
	Cluster string `json:"cluster"`
	Site    string `json:"site"`
	// Incarnation names the site's data for ever. Members are the sites that the data was
	// founded with, Version counts their sets, and Cluster version is the data's.
	Incarnation    uint64   `json:"incarnation,string"`
	Members        []string `json:"members"`
	MembersVersion uint64   `json:"members_version"`
	ClusterVersion uint32   `json:"cluster_version"`
	// After is the last commit that is not in the log: above 0, a site that ran on a local
	// log alone went over to this one, with the commits through After in the site's base.
	After journal.Number `json:"after"`
}

// Found writes the origin of a log unless the log has an origin, and returns the present origin. Calls
// are repeated as Options.Wait says.
func Found(kv KV, keys Keys, o Origin, wait func(attempt int, failure error) error) (Origin, error) {
	value, err := json.Marshal(&o)
	if err != nil {
		return Origin{}, fmt.Errorf("encoding the origin of the log: %w", err)
	}
	for attempt := 1; ; attempt++ {
		done, err := kv.Do(&Txn{
			If: []Guard{{keys.origin(), Absent}},
			// The empty commit After is the guard of the first commit. It is trimmed like any
			// other, and then no repetition of the first that is late puts it once more.
			Then: []Change{{Key: keys.origin(), Value: value}, {Key: keys.commit(o.After), Value: []byte("origin")}},
			Else: []string{keys.origin()},
		})
		switch {
		case err != nil:
			if err := wait(attempt, err); err != nil {
				return Origin{}, fmt.Errorf("founding the log: %w", err)
			}
		case done.Held:
			return o, nil
		default:
			e, _ := done.found(keys.origin())
			return originOf(e.Value)
		}
	}
}

// Look returns the origin of a log; ok is false if there is none.
func Look(kv KV, keys Keys, wait func(attempt int, failure error) error) (o Origin, ok bool, err error) {
	for attempt := 1; ; attempt++ {
		found, err := kv.Read(keys.origin(), keys.origin()+"\x00", 1)
		switch {
		case err != nil:
			if err := wait(attempt, err); err != nil {
				return Origin{}, false, fmt.Errorf("looking for the log: %w", err)
			}
		case len(found) == 0:
			return Origin{}, false, nil
		default:
			o, err := originOf(found[0].Value)
			return o, err == nil, err
		}
	}
}

func originOf(value []byte) (Origin, error) {
	var o Origin
	if err := json.Unmarshal(value, &o); err != nil {
		return Origin{}, fmt.Errorf("%w: its origin: %w", errRecord, err)
	}
	if o.Incarnation == 0 {
		return Origin{}, fmt.Errorf("%w: its origin names no incarnation", errRecord)
	}
	return o, nil
}
