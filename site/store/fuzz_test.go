package store

import (
	"reflect"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
)

// FuzzDecode: whatever is on the disk, decoding returns or fails, and what it
// returns is encoded and decoded to the same again.
func FuzzDecode(f *testing.F) {
	value := &avantan.Value{Policy: "demand", Contributions: []avantan.Contribution{{Site: "a", Offered: -1, Wanted: 2}}}
	state := avantan.State{
		Applied: 3, Promised: avantan.Ballot{Number: 2, Site: "a"}, AcceptedAt: avantan.Ballot{Number: 1, Site: "b"},
		Accepted: value, Kept: []avantan.Kept{{Peer: "b", Instance: 2, Value: *value}},
	}
	seed := func(raw []byte, err error) {
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	seed(encodeBooks(nil, &core.BooksRecord{Generation: 1, Left: -2, Net: 3}))
	seed(encodeEntity(&core.EntityRecord{Generation: 1, Protocol: state, Results: []core.LimitResult{{RequestID: "x"}}}))
	seed(encodeCatalogue(&core.CatalogueRecord{
		Generation: 1, Numbered: 2, Mode: core.ModeRecord{Protocol: "star", Version: 1}, Protocol: state,
	}))
	seed(encodeChange(&core.ChangeRecord{Instance: 1, Change: core.CatalogueChange{Kind: core.CreateEntity, Name: "e"}}))
	seed(encodeForecast(&core.ForecastRecord{Generation: 2, Model: "auto", Bin: 5000, Wall: -1, State: []byte("state")}))
	block, _, err := encodeBlock(nil, nil, &core.RequestBlock{Wall: 5, Records: make([]core.RequestRecord, 3)})
	seed(block, err)
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff})
	f.Add([]byte("\x12\x05short"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		check := func(what string, first any, err error, again func() (any, error)) {
			t.Helper()
			if err != nil {
				return
			}
			second, err := again()
			if err != nil || !reflect.DeepEqual(first, second) {
				t.Fatalf("%s: %+v, again %+v, %v", what, first, second, err)
			}
		}
		books, err := decodeBooks("e", raw)
		check("books", books, err, func() (any, error) {
			raw, err := encodeBooks(nil, &books)
			if err != nil {
				return nil, err
			}
			return decodeBooks("e", raw)
		})
		entity, err := decodeEntity("e", raw)
		if check("entity", entity, err, func() (any, error) {
			raw, err := encodeEntity(&entity)
			if err != nil {
				return nil, err
			}
			return decodeEntity("e", raw)
		}); err == nil {
			_ = entity.Protocol.Validate()
		}
		catalogue, err := decodeCatalogue(raw)
		check("catalogue", catalogue, err, func() (any, error) {
			raw, err := encodeCatalogue(catalogue)
			if err != nil {
				return nil, err
			}
			return decodeCatalogue(raw)
		})
		change, err := decodeChange(9, raw)
		check("change", change, err, func() (any, error) {
			raw, err := encodeChange(&change)
			if err != nil {
				return nil, err
			}
			return decodeChange(9, raw)
		})
		forecast, err := decodeForecast("e", raw)
		check("forecast", forecast, err, func() (any, error) {
			raw, err := encodeForecast(&forecast)
			if err != nil {
				return nil, err
			}
			return decodeForecast("e", raw)
		})
		block, err := decodeBlock(9, raw)
		check("block", block, err, func() (any, error) {
			raw, _, err := encodeBlock(nil, nil, &block)
			if err != nil {
				return nil, err
			}
			return decodeBlock(9, raw)
		})
	})
}
