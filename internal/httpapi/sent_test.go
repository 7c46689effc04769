package httpapi_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

// TestWhichFaultsProve: without a connection, or with a certificate refused by either
// side, a request was certainly not sent. No other fault proves anything.
func TestWhichFaultsProve(t *testing.T) {
	alert := func(a tls.AlertError) error { return &net.OpError{Op: "remote error", Err: errors.New(a.Error())} }
	type fault struct {
		err  error
		sent bool
	}
	faults := map[string]fault{
		"no connection":            {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false},
		"a read fails":             {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"a write fails":            {&net.OpError{Op: "write", Err: syscall.EPIPE}, true},
		"the connection ends":      {io.ErrUnexpectedEOF, true},
		"time is up":               {os.ErrDeadlineExceeded, true},
		"the server's certificate": {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false},
		"a record of no TLS":       {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, true},
		"a text like an alert's":   {&net.OpError{Op: "read", Err: errors.New(tls.AlertError(42).Error())}, true},
	}
	// Alerts that a server sends before it reads anything: RFC 8446, section 6.
	before := []tls.AlertError{40, 42, 43, 44, 45, 46, 48, 70, 71, 112, 116, 120}
	for a := range tls.AlertError(130) {
		faults[fmt.Sprint("alert ", uint8(a))] = fault{alert(a), !slices.Contains(before, a)}
	}
	for name, fault := range faults {
		c := newClient(t, "am:1", roundTripper(func(*http.Request) (*http.Response, error) { return nil, fault.err }))
		_, err := c.Acquire(t.Context(), "acme", httpapi.Request{Tokens: 1})
		e, ok := errors.AsType[*httpapi.UnreachableError](err)
		if !ok || e.Sent != fault.sent || !errors.Is(err, fault.err) {
			t.Errorf("%s: %v, want one that says sent = %t", name, err, fault.sent)
			continue
		}
		if strings.Contains(err.Error(), "/v1/") {
			t.Errorf("%s: %q repeats the request", name, err)
		}
	}
}

// body is the body of an answer that breaks where it ends.
type body struct {
	io.Reader
	closed bool
}

var errBroken = errors.New("the connection broke")

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		return n, errBroken
	}
	return n, nil
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// broken answers every request with a body that breaks behind text.
func broken(status int, text string) (http.RoundTripper, *body) {
	b := &body{Reader: strings.NewReader(text)}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {apierr.ProblemType}}, Body: b, Request: r}, nil
	}), b
}

// TestAnswersThatBreak: a server that answers has read the request, so the request counts
// as sent. The body is closed.
func TestAnswersThatBreak(t *testing.T) {
	watch := func(c *httpapi.Client) error {
		return c.WatchEntity(t.Context(), "acme", "", func(httpapi.State) error { return nil })
	}
	acquire := func(c *httpapi.Client) error {
		_, err := c.Acquire(t.Context(), "acme", httpapi.Request{Tokens: 1})
		return err
	}
	for name, test := range map[string]struct {
		status int
		text   string
		do     func(*httpapi.Client) error
	}{
		"an answer":            {http.StatusOK, `{"tokens":`, acquire},
		"a refusal":            {http.StatusConflict, `{"reason":`, acquire},
		"a watch":              {http.StatusOK, `{"name":"acme","limit":3}` + "\n", watch},
		"a watch's refusal":    {http.StatusConflict, `{"reason":`, watch},
		"a state half written": {http.StatusOK, `{"name":"ac`, watch},
	} {
		transport, b := broken(test.status, test.text)
		err := test.do(newClient(t, "am:1", transport))
		e, ok := errors.AsType[*httpapi.UnreachableError](err)
		if !ok || !e.Sent || e.Addr != "http://am:1" || !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
		if !b.closed {
			t.Errorf("%s: the body is left open", name)
		}
	}
}

// TestRefusedCertificates: a server that refuses the caller's certificate has read no
// request, although the caller of TLS 1.3 has sent it by then.
func TestRefusedCertificates(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Error("a request was read")
		}))
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: version, MaxVersion: version}
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.StartTLS()
		_, err := newClient(t, s.URL, s.Client().Transport).Acquire(t.Context(), "acme", httpapi.Request{Tokens: 1})
		if e, ok := errors.AsType[*httpapi.UnreachableError](err); !ok || e.Sent {
			t.Errorf("%s: %v, want one that says that nothing was sent", tls.VersionName(version), err)
		}
		s.Close()
	}
}
