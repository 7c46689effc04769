package inspection

// Since returns the figures of the time between before, an earlier look at the same site,
// and s. Counts and the imbalance are of the operations in between. Present values stay,
// as do the figures of pauses, which cannot be taken apart. If the site was started in
// between, all figures are since its start.
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

// Since returns the figures of the time since an earlier look at the same sites.
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

// less returns how much a count has grown. A count that has begun again, such as the
// count of an entity that was split anew, has grown by its present value.
func less(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// imbalance returns the load of the busiest partition divided by the mean load.
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
