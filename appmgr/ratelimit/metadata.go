package ratelimit

import (
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// metadataOf is the dynamic metadata of an answer: the metadata of the rules that let the
// request pass, and the request. It is nil if no rule has metadata.
func metadataOf(in *ratelimitv3.RateLimitRequest, all []decided) *structpb.Struct {
	var merged map[string]any
	for i := range all {
		if d := &all[i]; d.match != nil && len(d.match.Metadata) > 0 && !d.refuses() {
			if merged == nil {
				merged = make(map[string]any)
			}
			merge(merged, d.match.Metadata)
		}
	}
	if len(merged) == 0 {
		return nil
	}
	descriptors := make([]any, len(in.GetDescriptors()))
	for i, d := range in.GetDescriptors() {
		entries := make([]any, len(d.GetEntries()))
		for j, e := range d.GetEntries() {
			entries[j] = e.GetKey() + "=" + e.GetValue()
		}
		told := map[string]any{"entries": entries}
		if d.GetLimit() != nil {
			told["limit"] = d.GetLimit().String()
		}
		if h := d.GetHitsAddend(); h != nil {
			told["hitsAddend"] = h.GetValue()
		}
		descriptors[i] = told
	}
	whole := map[string]any{"domain": in.GetDomain(), "descriptors": descriptors, "metadata": merged}
	if h := in.GetHitsAddend(); h != 0 {
		whole["hitsAddend"] = h
	}
	// Metadata that has no such form was refused with its file.
	s, err := structpb.NewStruct(whole)
	if err != nil {
		return nil
	}
	return s
}

// merge adds the fields of another mapping. A field that is there already stays, and a
// mapping in both is merged.
func merge(into, from map[string]any) {
	for k, v := range from {
		old, there := into[k]
		if !there {
			if m, ok := v.(map[string]any); ok {
				// The rule keeps its own.
				v = map[string]any{}
				merge(v.(map[string]any), m)
			}
			into[k] = v
			continue
		}
		a, isMap := old.(map[string]any)
		b, isToo := v.(map[string]any)
		if isMap && isToo {
			merge(a, b)
		}
	}
}
