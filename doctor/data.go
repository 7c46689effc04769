package doctor

// Data tells of a data directory. Unreadable figures are empty.
type Data struct {
	Dir string `json:"dir"`
	// Cluster and Site are the owner of the data, Members the sites of the cluster that
	// the data names, Format the format of the data.
	Cluster string   `json:"cluster"`
	Site    string   `json:"site"`
	Members []string `json:"members"`
	Format  uint32   `json:"format"`
	// Incarnation names the data, in hexadecimal digits. Commit is the number of the last
	// commit that a start would find.
	Incarnation string `json:"incarnation"`
	Commit      uint64 `json:"commit"`
	// Entities, Leases and Requests are how many a start would find.
	Entities int `json:"entities"`
	Leases   int `json:"leases"`
	Requests int `json:"requests"`
	// BaseBytes is the length of site.db, Log the files of the log.
	BaseBytes int64     `json:"base_bytes"`
	Log       []LogFile `json:"log"`
	// FreeBytes is the free space of the disk; null if unknown.
	FreeBytes *uint64 `json:"free_bytes"`
}

// LogFile is a file of a log.
type LogFile struct {
	Name string `json:"name"`
	// First and Last are the numbers of the commits in the file; Last is 0 for none.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Bytes is the length of the commits.
	Bytes int64 `json:"bytes"`
}

// Found returns a finding about a data directory: one of the names of this package that
// need no rule. The place of damage, or the cause, may be empty.
func Found(id, summary, where string, labels map[string]string) Finding {
	return found(id, summary, where, labels)
}

// OfData returns the report on a data directory. The findings given come beside those of
// the rules about figures of the data.
func OfData(data *Data, all []Finding) (Report, error) {
	r := Report{Cluster: data.Cluster, Data: data}
	logBytes := int64(0)
	for _, f := range data.Log {
		logBytes += f.Bytes
	}
	byRule, err := judgeNow([]Sample{
		{Metric: "samya_site_log_bytes", Value: float64(logBytes)},
		{Metric: "samya_site_requests_remembered", Value: float64(data.Requests)},
	}, data)
	if err != nil {
		return Report{}, err
	}
	r.complete(append(all, byRule...))
	return r, nil
}

// judgeNow judges figures of a site that does not run, by the rules that need no others.
func judgeNow(figures []Sample, data *Data) ([]Finding, error) {
	d := NewDiagnosis()
	p := Process{Job: JobSite, Name: data.Site, Instance: data.Dir, State: Answers}
	if err := d.Add(Look{Cluster: data.Cluster, Observations: []Observation{{Process: p, Metrics: figures}}}); err != nil {
		return nil, err
	}
	r, err := d.Report()
	return r.Findings, err
}
