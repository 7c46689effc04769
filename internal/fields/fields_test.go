package fields_test

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/internal/fields"
	"github.com/samya-db/samya/internal/testfuzz"
)

var errEnough = errors.New("enough")

func TestEach(t *testing.T) {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 300)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "ab")
	b = protowire.AppendFixed64(protowire.AppendTag(b, 3, protowire.Fixed64Type), 7)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "")
	var got []protowire.Number
	err := fields.Each(b, func(f fields.Field) error {
		got = append(got, f.Num)
		if f.Num == 1 && f.Number != 300 || f.Num == 2 && len(got) == 2 && string(f.Bytes) != "ab" {
			t.Errorf("%+v", f)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, []protowire.Number{1, 2, 3, 2}) {
		t.Errorf("%v, %v", got, err)
	}
	if err := fields.Each(b, func(fields.Field) error { return errEnough }); !errors.Is(err, errEnough) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"\x08", "\x12\x05a", "\x00", "\x0f"} {
		if err := fields.Each([]byte(bad), func(fields.Field) error { return nil }); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// FuzzEach: whatever comes in, reading ends, with values within the message.
func FuzzEach(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte("\x08\x01\x12\x01a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		total := 0
		if fields.Each(b, func(f fields.Field) error {
			total += len(f.Bytes) + 1
			return nil
		}) == nil && total > len(b) {
			t.Errorf("%d bytes of %d", total, len(b))
		}
	})
}
