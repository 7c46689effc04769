package inspection

// Since returns what was done between an earlier look at the same site and s: counts
// are those of the time between, and the imbalance is that of their operations. What
// is as of now stays, and so do the figures of pauses, which cannot be taken apart.
// If the site was started in between, all is since its start.
func (s Site) Since(before Site) Site {
	if !before.Known || !s.Known || s.UpMS < before.UpMS || len(s.Partitions) != len(before.Partitions) {
		return s
	}
	d := s
	d.UpMS -= before.UpMS
	d.Served, d.Cross, d.Passed = less(s.Served, before.Served), less(s.Cross, before.Cross), less(s.Passed, before.Passed)
	d.Partitions = make([]Partition, len(s.Partitions))
	for i, p := range s.Partitions {
		p.Operations = less(p.Operations, before.Partitions[i].Operations)
		d.Partitions[i] = p
	}
	d.Imbalance = imbalance(d.Partitions)
	r, was := &d.Repartitioning, before.Repartitioning
	r.Computed, r.Applied = less(r.Computed, was.Computed), less(r.Applied, was.Applied)
	r.Skipped, r.Failed = less(r.Skipped, was.Skipped), less(r.Failed, was.Failed)
	r.Moved = less(r.Moved, was.Moved)
	earlier := map[string]uint64{}
	for _, e := range before.Split {
		earlier[e.Name] = e.Operations
	}
	d.Split = make([]Split, len(s.Split))
	for i, e := range s.Split {
		e.Operations = less(e.Operations, earlier[e.Name])
		d.Split[i] = e
	}
	return d
}

// Since returns what was done since an earlier look at the same sites.
func (s Status) Since(before Status) Status {
	d := Status{Complete: s.Complete, Sites: make([]Site, len(s.Sites))}
	earlier := map[string]Site{}
	for _, site := range before.Sites {
		earlier[site.Site] = site
	}
	for i, site := range s.Sites {
		d.Sites[i] = site.Since(earlier[site.Site])
	}
	return d
}

// less is how much a count has grown. One that has begun again, as that of an entity
// that was split anew does, has grown by all that it is.
func less(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// imbalance is the load of the partition with most over the mean.
func imbalance(ps []Partition) float64 {
	var most, all uint64
	for _, p := range ps {
		most, all = max(most, p.Operations), all+p.Operations
	}
	if all == 0 {
		return 0
	}
	return float64(most) * float64(len(ps)) / float64(all)
}
