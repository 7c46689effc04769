package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/httpapi"
)

// TestUnknownIsToldAsUnknown: neither form of the output has a number for an unknown
// figure. The output says that sums above the limit are no sums of a single moment.
func TestUnknownIsToldAsUnknown(t *testing.T) {
	s := httpapi.Status{
		Entity: httpapi.Entity{Name: "e", Limit: 100}, Available: 80, Acquired: 30,
		Shares: []httpapi.Share{{Site: "au"}, {Site: "eu", Left: 80, Net: 30, AgeMS: 900, Known: true}},
	}
	b, err := json.Marshal(honestly(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"in_transit":null`, `{"site":"au","known":false,"left":null,"offered":null`, `"left":80`, `"age_ms":900`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
	var text bytes.Buffer
	printStatus(&text, s)
	for _, want := range []string{"Not every site answered", "add up to 10 more than the limit", "never seen", "?"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s\nlacks %q", text.String(), want)
		}
	}
	s.Complete, s.Acquired, s.InTransit = true, 15, 5
	if b, err = json.Marshal(honestly(s)); err != nil || !strings.Contains(string(b), `"in_transit":5`) {
		t.Errorf("%s, %v", b, err)
	}
}
