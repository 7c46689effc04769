package httpapi

import (
	"bytes"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestPlainBodies: the short way reads ordinary bodies, and leaves wrong and unusual
// bodies alone.
func TestPlainBodies(t *testing.T) {
	for body, plain := range map[string]bool{
		`{"tokens":3}`: true,
		`{"tokens":3,"request_id":"r-1","site":"us"}`:                       true,
		" {\t\"request_id\" :\r\n\"~!\" , \"tokens\" : 9007199254740991 } ": true,
		`{"request_id":""}`:                        true,
		`{}`:                                       false,
		``:                                         false,
		`{`:                                        false,
		`{"tokens"`:                                false,
		`{"tokens":`:                               false,
		`{"tokens":3`:                              false,
		`{"tokens":3,`:                             false,
		`{"tokens":3,}`:                            false,
		`{"tokens":3}}`:                            false,
		`{"tokens":3}{}`:                           false,
		`[{"tokens":3}]`:                           false,
		`{"tokens":0}`:                             false,
		`{"tokens":03}`:                            false,
		`{"tokens":-3}`:                            false,
		`{"tokens":3.0}`:                           false,
		`{"tokens":3e0}`:                           false,
		`{"tokens":9007199254740992}`:              false,
		`{"tokens":36893488147419103233}`:          false,
		`{"tokens":"3"}`:                           false,
		`{"tokens":3,"tokens":3}`:                  false,
		`{"tokens":3,"site":"us","site":"us"}`:     false,
		`{"tokens":3,"request_id":"a\\u0062"}`:     false,
		`{"tokens":3,"request_id":"é"}`:            false,
		`{"tokens":3,"request_id":"open}`:          false,
		`{"tokens":3,"request_id":null}`:           false,
		`{"tokens":3,"wait":"1m"}`:                 true,
		`{"tokens":3,"wait":"0s"}`:                 true,
		`{"tokens":3,"wait":"61s"}`:                false,
		`{"tokens":3,"wait":"-1s"}`:                false,
		`{"tokens":3,"wait":""}`:                   false,
		`{"tokens":3,"wait":2}`:                    false,
		`{"tokens":3,"wait":"2s","wait":"2s"}`:     false,
		`{"Tokens":3}`:                             false,
		`{"tokens":3,"lease":{"ttl":"2s"}}`:        false,
		`{"tokens":3,"request_id":"r" "site":"s"}`: false,
	} {
		in := &samyav1.AcquireRequest{Entity: "e"}
		if got := plainAcquire([]byte(body), in); got != plain {
			t.Errorf("%s: plain %v, want %v", body, got, plain)
		}
		if !plain && !proto.Equal(in, &samyav1.AcquireRequest{Entity: "e"}) {
			t.Errorf("%s changed the request to %v", body, in)
		}
	}
	if plainRelease([]byte(`{"tokens":3,"wait":"2s"}`), &samyav1.ReleaseRequest{Entity: "e"}) {
		t.Error("a release that waits was read")
	}
}

// FuzzPlainBodies: decodeJSON reads alike every body that the short way reads.
func FuzzPlainBodies(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		`{"tokens":3,"request_id":"x","site":"us"}`, `{"site":"","tokens":12345678901234567}`, `{"tokens":1,"tokens":2}`,
		" {\n\"tokens\" : 10 }\t", `{"tokens":3}x`, `{"tokens":3,"wait":"2s"}`, `{"wait":"1.5h","tokens":3}`, `{"wait":"","tokens":3}`, "{\"request_id\":\"\x7f\"}", `{"tokens":01}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		short, long := &samyav1.AcquireRequest{Entity: "e"}, &samyav1.AcquireRequest{Entity: "e"}
		if plainAcquire(body, short) {
			if err := decodeJSON(body, fieldsOf(long)); err != nil || !proto.Equal(short, long) {
				t.Fatalf("%q read as %v, want %v, %v", body, short, long, err)
			}
		}
		back, want := &samyav1.ReleaseRequest{Entity: "e"}, &samyav1.ReleaseRequest{Entity: "e"}
		if plainRelease(body, back) {
			if err := decodeJSON(body, fieldsOf(want)); err != nil || !proto.Equal(back, want) {
				t.Fatalf("%q read as %v, want %v, %v", body, back, want, err)
			}
		}
	})
}

// FuzzMoved: answers are as encoding/json has them.
func FuzzMoved(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("acme/vm", "r-1", "us", int64(3), int64(-7), true, false)
	f.Add("<&>\"\\", "é\u2028\xff", "\x00", int64(-1<<63), int64(1<<53-1), false, true)
	f.Fuzz(func(t *testing.T, entity, id, site string, tokens, left int64, parked, leased bool) {
		m := moved{Entity: entity, Tokens: tokens, RequestID: id, Site: site, Left: left, Parked: parked}
		if leased {
			m.Lease = &leaseJSON{Name: id, Tokens: tokens}
		}
		want, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.appendTo([]byte("before"))
		if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Fatalf("%s, want %s, %v", got, want, err)
		}
	})
}
