package wangrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/lab/wangrpc"
)

func TestUnaryClientInterceptor(t *testing.T) {
	const roundTrip = 100 * time.Millisecond
	broken := errors.New("broken")
	for _, tc := range []struct {
		name    string
		timeout time.Duration
		answer  error
		sent    bool
		code    codes.Code
		took    time.Duration
	}{
		{"answered", time.Second, nil, true, codes.OK, 110 * time.Millisecond},
		{"failed", time.Second, broken, true, codes.Unknown, 110 * time.Millisecond},
		{"ended on the way there", 40 * time.Millisecond, nil, false, codes.DeadlineExceeded, 40 * time.Millisecond},
		{"ended on the way back", 90 * time.Millisecond, nil, true, codes.DeadlineExceeded, 90 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, err := grpc.NewClient("passthrough:///there", grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				intercept := wangrpc.UnaryClientInterceptor(func(_ context.Context, method, target string) time.Duration {
					if method != "/a.B/C" || target != "passthrough:///there" {
						t.Errorf("asked for %q at %q", method, target)
					}
					return roundTrip
				})
				ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
				defer cancel()
				began, sent := time.Now(), false
				err = intercept(ctx, "/a.B/C", "request", "reply", conn,
					func(_ context.Context, method string, req, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
						sent = true
						if method != "/a.B/C" || req != "request" || reply != "reply" {
							t.Errorf("invoked %q with %v and %v", method, req, reply)
						}
						if d := time.Since(began); d != roundTrip/2 {
							t.Errorf("sent after %v", d)
						}
						<-time.After(10 * time.Millisecond)
						return tc.answer
					})
				if sent != tc.sent || status.Code(err) != tc.code || time.Since(began) != tc.took {
					t.Errorf("sent %v, %v after %v; want %v, %v after %v", sent, err, time.Since(began), tc.sent, tc.code, tc.took)
				}
				if tc.answer != nil && !errors.Is(err, tc.answer) {
					t.Errorf("got %v, want %v", err, tc.answer)
				}
			})
		})
	}
}
