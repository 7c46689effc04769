package httpapi

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
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
		in := &samyav1.ListEntitiesRequest{}
		q, err := readQuery(&http.Request{URL: &url.URL{RawQuery: raw}}, in)
		if err != nil {
			if e := apierr.From(err); e.Reason != apierr.InvalidField || len(e.Violations) == 0 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if size := in.GetPageSize(); size < 0 || size > name.MaxPageSize || len(q) > 3 {
			t.Fatalf("%q is read as %v, size %d", raw, q, size)
		}
	})
}
