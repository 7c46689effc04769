package main

import "github.com/samya-db/samya/internal/httpapi"

// honest is an entity in JSON, with null for unknown numbers.
type honest struct {
	httpapi.Status
	InTransit *int64        `json:"in_transit"`
	Shares    []honestShare `json:"shares"`
}

// honestShare is a site's share, without numbers if the site is not known.
type honestShare struct {
	httpapi.Share
	Left            *int64  `json:"left"`
	Offered         *int64  `json:"offered"`
	Net             *int64  `json:"net"`
	AgeMS           *int64  `json:"age_ms"`
	Waiting         *int64  `json:"waiting"`
	Redistributions *uint64 `json:"redistributions"`
	Transfers       *uint64 `json:"transfers"`
}

// honestState is a state of a watch, with null for unknown numbers.
type honestState struct {
	honest
	Deleted     bool   `json:"deleted"`
	ResumeToken string `json:"resume_token"`
}

func honestly(s httpapi.Status) honest {
	h := honest{Status: s, Shares: []honestShare{}}
	if s.Complete {
		h.InTransit = &s.InTransit
	}
	for _, share := range s.Shares {
		o := honestShare{Share: share}
		if share.Known {
			o.Left, o.Offered, o.Net, o.AgeMS = &share.Left, &share.Offered, &share.Net, &share.AgeMS
			o.Waiting, o.Redistributions, o.Transfers = &share.Waiting, &share.Redistributions, &share.Transfers
		}
		h.Shares = append(h.Shares, o)
	}
	return h
}
