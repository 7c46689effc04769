package peers

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/internal/testfuzz"
)

// answer is a RateLimitResp.
func answer(status uint64, fault string) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, toldStatus, protowire.VarintType), status)
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), 7) // remaining
	if fault != "" {
		b = protowire.AppendString(protowire.AppendTag(b, toldError, protowire.BytesType), fault)
	}
	return b
}

// TestWithin reads answers of a Gubernator.
func TestWithin(t *testing.T) {
	for name, c := range map[string]struct {
		one   []byte
		under bool
		fault string
	}{
		"under":     {answer(0, ""), true, ""},
		"no fields": {nil, true, ""}, // the first of an enumeration is left out
		"over":      {answer(1, ""), false, ""},
		"a fault":   {answer(0, "no peers"), false, "no peers"},
		"cut off":   {answer(0, "no peers")[:6], false, "neither"},
	} {
		under, err := within(c.one)
		if under != c.under || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %t, %v", name, under, err)
		}
	}
}

func FuzzWithin(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(answer(1, "x"))
	f.Fuzz(func(_ *testing.T, one []byte) { _, _ = within(one) })
}
