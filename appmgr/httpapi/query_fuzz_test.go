package httpapi

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzQuery: a query has known parameters within their bounds, or the refusal is the
// caller's fault.
func FuzzQuery(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		"", "prefix=acme/&page_size=50", "page_size=1&page_size=2", "page_size=-1", "page_size=1e3", "a=b", "%zz", "page_token=%00", ";",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := query(&http.Request{URL: &url.URL{RawQuery: raw}}, "prefix", "page_size", "page_token")
		var size int64
		if err == nil {
			err = q.whole("page_size", 0, name.MaxPageSize, &size)
		}
		if err != nil {
			if e := apierr.From(err); e.Reason != apierr.InvalidField || len(e.Violations) == 0 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if size < 0 || size > name.MaxPageSize || len(q) > 3 {
			t.Fatalf("%q is read as %v, size %d", raw, q, size)
		}
	})
}
