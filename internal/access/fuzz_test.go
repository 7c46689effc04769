package access_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// FuzzCredentials: a caller counts as nobody unless it shows credentials that the access
// file knows.
func FuzzCredentials(tf *testing.F) {
	f := testfuzz.On(tf)
	set := credtest.New(f)
	g, err := access.Open(access.Config{File: set.AccessFile()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = g.Close() })
	good := map[string]bool{}
	for _, c := range []string{"viewer", "client", "other", "operator", "tenant", "admin"} {
		good[credtest.Token(c)] = true
		f.Add("Bearer " + credtest.Token(c))
	}
	jwt := set.JWT(nil)
	good[jwt] = true
	parts := strings.Split(jwt, ".")
	for _, s := range []string{
		"", "Bearer", "Bearer x", "Bearer " + jwt, "bearer " + jwt + " ", "Bearer ..", "Bearer a.b.c", "Bearer " + parts[0] + ".." + parts[2],
		"Bearer eyJhbGciOiJub25lIn0." + parts[1] + ".", "Bearer " + parts[0] + "." + parts[1] + ".AAAA", "Basic YTpi",
		"Bearer {\"payload\":\"\",\"signatures\":[{}]}", "Bearer " + strings.Repeat("a", 9000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, authorization string) {
		r := &http.Request{Header: http.Header{"Authorization": {authorization}}}
		_, err := g.HTTP(r.WithContext(t.Context()), samyav1.EntityService_GetEntity_FullMethodName)
		scheme, token, _ := strings.Cut(authorization, " ")
		is := strings.EqualFold(scheme, "bearer") && good[strings.TrimSpace(token)]
		if (err == nil) != is {
			t.Fatalf("%q: %v", authorization, err)
		}
	})
}

// raw sends bytes as they are, and takes any.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

var _ encoding.CodecV2 = raw{}

// FuzzRequests: whatever bytes an admin sends to any method, a site, an app manager and
// HTTP answer, and go on.
func FuzzRequests(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Inputs = 500 // of four requests each
	c := start(f, access.Limits{})
	conns := []*grpc.ClientConn{c.dial(c.site.GRPCAddr(), c.caller("admin")), c.dial(c.manager.GRPCAddr(), c.caller("admin"))}
	shows := c.caller("admin")
	web := c.web(shows)
	var methods []string
	for m := range demands {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	all := operations(f)
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	for i := range methods {
		f.Add(uint8(i), []byte{}, "")
		f.Add(uint8(i), []byte("\x0a\x07acme/vm\x10\x01"), `{"tokens":1}`)
		f.Add(uint8(i), []byte("\x0a\xff\xff\xff\xff\x0f"), `[`)
		f.Add(uint8(i), []byte("\x0a\x0d\x08\x01\x12\x09\x0a\x07acme/vm"), `{"operations":[{}]}`)
	}
	f.Fuzz(func(t *testing.T, which uint8, request []byte, body string) {
		method := methods[int(which)%len(methods)]
		for i, conn := range conns {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(raw{}))
			if err == nil {
				if err = stream.SendMsg(request); err == nil || errors.Is(err, io.EOF) {
					_ = stream.CloseSend()
					err = stream.RecvMsg(nil)
				}
			}
			cancel()
			if s := status.Convert(err); err != nil && (s.Code() == codes.Unavailable && strings.Contains(s.Message(), "connection") || s.Code() == codes.DeadlineExceeded && ctx.Err() != nil && !lasts(method)) {
				t.Fatalf("%s at %d: %v", method, i, err)
			}
		}
		o := all[int(which)%len(all)]
		path, _, _ := strings.Cut(routes[o.id].path, "?")
		if _, _, err := c.request(web, shows, c.manager.HTTPAddr(), o.method, path, body); err != nil {
			t.Fatalf("%s: %v", o.id, err)
		}
		if _, _, err := c.request(web, shows, c.site.HTTPAddr(), "GET", "/readyz", ""); err != nil {
			t.Fatalf("afterwards: %v", err)
		}
	})
}

// lasts reports whether a method may say nothing for a while.
func lasts(method string) bool {
	return strings.HasSuffix(method, "/Acquire") || strings.HasSuffix(method, "/Batch")
}
