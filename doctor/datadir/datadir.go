package datadir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/samya-db/samya/doctor"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
)

// leastFree is how much free space a disk should have, in bytes: a log at its longest, a
// log file that is set aside, and what site.db grows by. See docs/data.md.
const leastFree = 600 << 20

// Examine looks at a directory. The error is store.ErrInUse if a site runs on it, or that
// of reading the directory.
func Examine(dir string) (doctor.Report, error) {
	x, err := store.Examine(dir)
	if err != nil {
		return doctor.Report{}, fmt.Errorf("examining the data: %w", err)
	}
	rescued, err := store.Rescued(dir)
	if err != nil {
		return doctor.Report{}, fmt.Errorf("examining the data: %w", err)
	}
	free, known := freeBytes(dir)
	data, err := dataOf(dir, &x)
	if err != nil {
		return doctor.Report{}, fmt.Errorf("examining the data: %w", err)
	}
	if known {
		data.FreeBytes = &free
	}
	found := findings(dir, &x, data)
	if rescued {
		labels := map[string]string{"cluster": x.Cluster, "name": string(x.Site), "directory": dir}
		found = append(found, doctor.Found(doctor.DataRescued, "What the data holds was given back to the cluster: no site starts on it.", "", labels))
	}
	return doctor.OfData(data, found)
}

func dataOf(dir string, x *store.Examination) (*doctor.Data, error) {
	d := &doctor.Data{
		Dir: dir, Cluster: x.Cluster, Site: string(x.Site), Members: []string{}, Format: x.Format,
		Commit: uint64(x.Restored.Commits), BaseBytes: x.BaseBytes, Log: []doctor.LogFile{},
		Entities: len(x.Restored.Entities), Leases: len(x.Restored.Leases),
	}
	if x.Incarnation != 0 {
		d.Incarnation = fmt.Sprintf("%016x", uint64(x.Incarnation))
	}
	for _, m := range x.Members.Sites {
		d.Members = append(d.Members, string(m))
	}
	if err := x.Restored.EachBlock(func(b *stored.Block) error {
		d.Requests += len(b.Records)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("counting the requests: %w", err)
	}
	for _, s := range x.Log {
		d.Log = append(d.Log, doctor.LogFile{Name: s.Name, First: uint64(s.First), Last: uint64(s.Last), Bytes: s.Bytes})
	}
	return d, nil
}

// findings are what is wrong with a directory.
func findings(dir string, x *store.Examination, data *doctor.Data) []doctor.Finding {
	labels := make(map[string]string)
	for name, v := range map[string]string{"cluster": x.Cluster, "name": string(x.Site), "directory": dir} {
		if v != "" {
			labels[name] = v
		}
	}
	var all []doctor.Finding
	add := func(id, summary, where string) { all = append(all, doctor.Found(id, summary, where, labels)) }
	if err := x.Refused; err != nil {
		id, summary := refusal(err)
		add(id, summary, err.Error())
	} else if err := whole(x); err != nil {
		add(doctor.BooksBroken, "The data contradicts itself: a site does not start on it.", err.Error())
	}
	// A log that a start refuses to go through may be damaged in further files.
	for _, s := range x.Log {
		switch {
		case s.Err != nil && x.Refused != nil && !strings.Contains(x.Refused.Error(), s.Name):
			id, summary := refusal(s.Err)
			add(id, summary, s.Err.Error())
		case s.Torn && x.Refused == nil:
			add(doctor.LogTorn, "The log ends with a commit that was cut off.",
				fmt.Sprintf("%s, behind commit %d", s.Name, max(s.Last, s.First-1)))
		}
	}
	if len(x.Leftovers) > 0 {
		add(doctor.DataLeftovers, "A start that was cut off has left files.", strings.Join(x.Leftovers, ", "))
	}
	if data.FreeBytes != nil && *data.FreeBytes < leastFree {
		f := doctor.Found(doctor.DiskSpace, fmt.Sprintf("The disk of %s has %d MiB of free space.", dir, *data.FreeBytes>>20), "", labels)
		f.Value, f.Bound = new(float64(*data.FreeBytes)), fmt.Sprintf("< %d", leastFree)
		all = append(all, f)
	}
	return all
}

// refusal returns the finding for the reason that a start is refused.
func refusal(err error) (id, summary string) {
	switch {
	case errors.Is(err, store.ErrNoBase):
		return doctor.DataMissing, "The directory holds no data of a site: its site.db is missing."
	case errors.Is(err, store.ErrUnknownFormat):
		return doctor.DataUnknown, "The data has a format that this version of samya does not know."
	case errors.Is(err, store.ErrForeign), errors.Is(err, journal.ErrForeign):
		return doctor.LogForeign, "The log belongs to other data than site.db."
	case errors.Is(err, store.ErrDamaged):
		return doctor.LogDamaged, "The log is damaged: an acknowledged part is missing or cannot be read."
	}
	return doctor.DataDamaged, "The base of the data, site.db, is damaged."
}

// whole returns an error if the data contradicts itself: a core does not take it.
func whole(x *store.Examination) error {
	_, err := core.New(core.Config{
		Self: x.Site, Members: x.Members.Sites, Rand: rand.New(rand.NewPCG(1, 1)), Run: 1,
	}, x.Restored)
	return err
}
