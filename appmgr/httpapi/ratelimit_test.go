package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzForward: no query ends the process. A header field is a value, and never changes the
// rules that are asked for.
func FuzzForward(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, query := range []string{
		"", "descriptor=a=@X", "descriptor=a=b,c=@X&hits=3&denied=403&failed=204", "descriptor=a&descriptor=b=@Y", "denied=99", "descriptor=%zz", "descriptor=,=",
	} {
		f.Add(query, "value")
		f.Add(query, "1,2=3&denied=204\xff")
	}
	f.Fuzz(func(t *testing.T, query, value string) {
		read := func(value string) (*forward, error) {
			return readForward(&http.Request{URL: &url.URL{RawQuery: query}, Header: http.Header{"X": {value}}})
		}
		q, err := read(value)
		plain, plainErr := read("plain")
		if (err == nil) != (plainErr == nil) {
			t.Fatalf("%q: %v with %q, %v without", query, err, value, plainErr)
		}
		if err != nil {
			if apierr.ReasonOf(err) != apierr.InvalidField {
				t.Fatalf("%q: %v", query, err)
			}
			return
		}
		if q.denied < 400 || q.denied > 599 || q.failed != 0 && q.failed != 204 && (q.failed < 400 || q.failed > 599) {
			t.Fatalf("%q: %d, %d", query, q.denied, q.failed)
		}
		if q.denied != plain.denied || q.failed != plain.failed || q.in.GetHitsAddend() != plain.in.GetHitsAddend() || len(q.in.GetDescriptors()) != len(plain.in.GetDescriptors()) {
			t.Fatalf("%q: %+v with %q, %+v without", query, q, value, plain)
		}
		for i, d := range q.in.GetDescriptors() {
			for j, e := range d.GetEntries() {
				other := plain.in.GetDescriptors()[i].GetEntries()[j]
				if e.GetKey() != other.GetKey() || e.GetValue() != other.GetValue() && e.GetValue() != strings.ToValidUTF8(value, "\uFFFD") {
					t.Fatalf("%q: %v with %q, %v without", query, e, value, other)
				}
			}
		}
	})
}
