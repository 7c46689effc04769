package store

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/internal/testfuzz"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/packed"
	"github.com/samya-db/samya/site/core/stored"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// codecs decode a stored value and encode it again, by the name of the decoder.
// TestCodecsAreFuzzed names any missing decoder.
var codecs = map[string]func(raw []byte) (decoded any, encode func() ([]byte, error), err error){
	"decodeBooks": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeBooks("e", raw)
		return r, func() ([]byte, error) { return encodeBooks(nil, &r), nil }, err
	},
	"decodeEntity": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeEntity("e", raw)
		// The core validates an entity's protocols first.
		_, _, _ = r.Protocol.Validate(), r.Star.Validate(), r.Transfer.Validate()
		_ = r.Handoff.Validate()
		return r, func() ([]byte, error) { return encodeEntity(&r) }, err
	},
	"decodeCatalogue": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeCatalogue(raw)
		return r, func() ([]byte, error) { return encodeCatalogue(r) }, err
	},
	"decodeChange": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeChange(9, raw)
		return r, func() ([]byte, error) { return encodeChange(&r) }, err
	},
	"decodeForecast": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeForecast("e", raw)
		return r, func() ([]byte, error) { return encodeForecast(&r) }, err
	},
	"decodeClaim": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeClaim(9, raw)
		return r, func() ([]byte, error) { return encodeClaim(&r) }, err
	},
	"decodeLease": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeLease(9, raw)
		return r, func() ([]byte, error) { return encodeLease(&r) }, err
	},
	"decodeBlock": func(raw []byte) (any, func() ([]byte, error), error) {
		r, err := decodeBlock(9, raw)
		return r, func() ([]byte, error) { return encodeBlock(&r), nil }, err
	},
}

func encodeBlock(b *stored.Block) []byte {
	return appendBlock(nil, b, packed.Block(nil, b))
}

// TestByHand: encoding by hand gives the bytes of the proto package.
func TestByHand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		books := stored.Books{
			Generation: rapid.Uint64().Draw(t, "generation"), Left: core.Tokens(rapid.Int64().Draw(t, "left")),
			Net: core.Tokens(rapid.Int64().Draw(t, "net")),
		}
		block := stored.Block{
			Wall: rapid.Int64().Draw(t, "wall"), Records: make([]stored.Request, rapid.IntRange(0, 20).Draw(t, "records")),
		}
		var tenants []*storev1.RecordTenant
		for i := range block.Records {
			if tenant := rapid.SampledFrom([]string{"", "a", "a/b"}).Draw(t, "tenant"); tenant != "" {
				block.Records[i].Tenant = tenant
				tenants = append(tenants, &storev1.RecordTenant{Record: uint32(i), Tenant: tenant}) //nolint:gosec // at most 20
			}
		}
		var sessions []*storev1.SessionMark
		for range rapid.IntRange(0, 3).Draw(t, "sessions") {
			s := stored.Session{ID: session.ID{rapid.Byte().Draw(t, "id")}, First: rapid.Uint64Range(0, session.MaxSequence).Draw(t, "first")}
			block.Sessions = append(block.Sessions, s)
			sessions = append(sessions, &storev1.SessionMark{Id: s.ID[:], First: s.First})
		}
		for got, want := range map[*[]byte]proto.Message{
			new(encodeBooks([]byte{1}, &books)): &storev1.Books{
				Generation: books.Generation, Left: int64(books.Left), Net: int64(books.Net),
			},
			new(appendBlock([]byte{1}, &block, packed.Block(nil, &block))): &storev1.RequestBlock{
				Wall: block.Wall, Records: packed.Block(nil, &block), Tenants: tenants, Sessions: sessions,
			},
		} {
			raw, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{1}, want)
			if err != nil || !bytes.Equal(*got, raw) {
				t.Fatalf("%v is %x, want %x, %v", want, *got, raw, err)
			}
		}
	})
}

// TestCodecsAreFuzzed: every decoder is among codecs.
func TestCodecsAreFuzzed(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "decode") && takesRaw(fn) {
				found = append(found, fn.Name.Name)
			}
		}
	}
	slices.Sort(found)
	if fuzzed := slices.Sorted(maps.Keys(codecs)); !slices.Equal(found, fuzzed) {
		t.Errorf("decoders are %v, fuzzed are %v", found, fuzzed)
	}
}

// takesRaw reports whether a function decodes a whole stored value.
func takesRaw(fn *ast.FuncDecl) bool {
	ps := fn.Type.Params.List
	last := ps[len(ps)-1].Names
	return last[len(last)-1].Name == "raw"
}

// FuzzDecode: decoding any bytes returns or fails, and the decoded value is encoded and
// decoded to the same again.
func FuzzDecode(tf *testing.F) {
	f := testfuzz.On(tf)
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
	seed(encodeBooks(nil, &stored.Books{Generation: 1, Left: -2, Net: 3}), nil)
	seed(encodeEntity(&stored.Entity{Generation: 2, Parent: 1, Shape: 7}))
	seed(encodeEntity(&stored.Entity{Generation: 1, Protocol: state, Results: []stored.LimitResult{{RequestID: "x"}}}))
	seed(encodeCatalogue(&stored.Catalogue{
		Generation: 1, Numbered: 2, Mode: answer.DecidedMode{Protocol: "star", Version: 1}, Protocol: state,
	}))
	seed(encodeChange(&stored.Change{Instance: 1, Change: stored.CatalogueChange{Kind: input.CreateEntity, Name: "e"}}))
	seed(encodeChange(&stored.Change{Instance: 1, Change: stored.CatalogueChange{Kind: input.MoveEntity, Name: "e", Parent: "p"}}))
	seed(encodeChange(&stored.Change{Instance: 1, Change: stored.CatalogueChange{Kind: input.DeleteEntity, Name: "e", Subtree: true}}))
	seed(encodeForecast(&stored.Forecast{Generation: 2, Model: "auto", Bin: 5000, Wall: -1, State: []byte("state")}))
	seed(encodeClaim(&stored.Claim{
		ClaimAsk: message.ClaimAsk{Kind: message.ReturnLease, Entity: "e", Tokens: 3, Attempt: 1, NotAfter: -1}, Generation: 2, Sites: []core.SiteID{"b"},
	}))
	seed(encodeLease(&stored.Lease{ID: "l", Entity: "e", Generation: 2, Tokens: 3, Expires: -1, TTL: 5, Holder: "h"}))
	seed(encodeBlock(&stored.Block{Wall: 5, Records: make([]stored.Request, 3)}), nil)
	seed(encodeBlock(&stored.Block{Records: []stored.Request{{}, {Tenant: "a"}}}), nil)
	seed(protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), []byte{8, 1}), nil)
	seed(encodeBlock(&stored.Block{Wall: 5, Records: []stored.Request{
		{Kind: stored.AllRequest, State: stored.Ran, Tokens: 3, Parts: []stored.Part{
			{Part: input.Part{Entity: "e", Tokens: 1}, Generation: 4}, {Part: input.Part{Entity: "f", Tokens: 2}, Generation: 5},
		}},
		{Kind: stored.AllRequest, State: stored.Refused},
	}}), nil)
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff})
	f.Add([]byte("\x12\x05short"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, decode := range codecs {
			first, encode, err := decode(raw)
			if err != nil {
				continue
			}
			encoded, err := encode()
			if err != nil {
				t.Fatalf("%s: %+v: %v", name, first, err)
			}
			if second, _, err := decode(encoded); err != nil || !reflect.DeepEqual(first, second) {
				t.Fatalf("%s: %+v, again %+v, %v", name, first, second, err)
			}
		}
	})
}
