package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/samya-db/samya/internal/apierr"
)

const (
	// openPath takes the key of a URL and gives a cookie for it.
	openPath = "/open"
	// cookiePrefix begins the name of the cookie. Browsers keep cookies by host, not by
	// port, so the port follows.
	cookiePrefix = "samya-console-"
	// maxSent bounds the body of a request, in bytes.
	maxSent = 1 << 20
	// maxConns bounds the connections of a person's browsers.
	maxConns = 64

	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
	stopTime   = 2 * time.Second
)

// LocalConfig configures a Local.
type LocalConfig struct {
	// Target is the address of the app manager, such as https://10.0.0.1:8080.
	Target string
	// Transport carries requests to the app manager with the person's credentials; nil for
	// the default.
	Transport http.RoundTripper
	// Listener takes the browser's connections. Nothing beyond this machine may reach it.
	Listener net.Listener
	// Ready gets the URL for a browser, at the start and whenever the URL before was used. It
	// may be called from several goroutines.
	Ready func(url string)
}

// Local serves the console on this machine, for a single person. It passes requests of the
// API on to an app manager, with that person's credentials. So it answers nobody but a
// browser that was opened by its URL:
//
//   - The Host header names the listener, so no other name was rebound to this machine.
//   - The URL has a key that holds once. A browser gets a cookie for it, which scripts
//     cannot read and other sites cannot have sent.
//   - A request of another origin, also of another port of this machine, is refused.
type Local struct {
	cfg    LocalConfig
	pages  http.Handler
	proxy  *httputil.ReverseProxy
	hosts  []string
	cookie string
	// session is the value of the cookie.
	session string

	mu  sync.Mutex
	key string
}

// NewLocal makes a Local.
func NewLocal(cfg LocalConfig) (*Local, error) {
	target, err := url.Parse(cfg.Target)
	if err != nil {
		return nil, fmt.Errorf("address of the app manager: %w", err)
	}
	pages, err := Handler()
	if err != nil {
		return nil, err
	}
	addr := cfg.Listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address of the console: %w", err)
	}
	l := &Local{
		cfg: cfg, pages: pages, hosts: []string{addr, net.JoinHostPort("localhost", port)},
		cookie: cookiePrefix + port, session: secret(), key: secret(),
	}
	l.proxy = &httputil.ReverseProxy{
		Transport: cfg.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			for _, own := range []string{"Cookie", "Origin", "Referer"} {
				r.Out.Header.Del(own)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			apierr.WriteProblem(w, r, apierr.New(apierr.SiteUnavailable, "the app manager %s does not answer: %v", target.Host, err))
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	return l, nil
}

// secret returns 256 random bits as text.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Serve serves until ctx ends.
func (l *Local) Serve(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s := &http.Server{
		Handler: l, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return life },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(netutil.LimitListener(l.cfg.Listener, maxConns)) }()
	l.cfg.Ready(l.url())
	select {
	case err := <-failed:
		return fmt.Errorf("serve the console: %w", err)
	case <-ctx.Done():
	}
	end() // watches never end by themselves
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := s.Shutdown(stop); err != nil {
		_ = s.Close() // the listener is closed already
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}

// url returns the URL that opens the console once.
func (l *Local) url() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "http://" + l.hosts[0] + openPath + "?key=" + l.key
}

// ServeHTTP implements http.Handler.
func (l *Local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	switch why := l.foreign(r); {
	case why != "":
		http.Error(w, why, http.StatusForbidden)
	case r.URL.Path == openPath:
		l.open(w, r)
	case !l.known(r):
		http.Error(w, "open the console by the URL that samya console has printed last", http.StatusForbidden)
	case Serves(r.URL.Path):
		l.pages.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/readyz":
		r.Body = http.MaxBytesReader(w, r.Body, maxSent)
		l.proxy.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// foreign tells why a request cannot be one of a page of this console; empty if it can.
func (l *Local) foreign(r *http.Request) string {
	here := false
	for _, host := range l.hosts {
		here = here || r.Host == host
	}
	if !here {
		return "the console is not served under this name"
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return "a page of another origin asks"
	}
	// A person who opens a URL comes from no site. A page of another port comes from the
	// same site, and from another origin.
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin":
	case "none":
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return "a request from no page changes nothing"
		}
	default:
		return "a page of another origin asks"
	}
	return ""
}

// known reports whether a request has the cookie.
func (l *Local) known(r *http.Request) bool {
	c, err := r.Cookie(l.cookie)
	return err == nil && same(c.Value, l.session)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// open gives a cookie for the key, which holds once.
func (l *Local) open(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet:
		http.Error(w, "the console is opened with GET", http.StatusMethodNotAllowed)
	case l.known(r):
		http.Redirect(w, r, Path, http.StatusSeeOther)
	case r.Header.Get("Sec-Purpose") != "":
		// A browser that looks ahead would use the key up.
		http.Error(w, "not ahead of time", http.StatusServiceUnavailable)
	case !l.use(r.URL.Query().Get("key")):
		http.Error(w, "this URL was used; open the console by the URL that samya console has printed last", http.StatusForbidden)
	default:
		http.SetCookie(w, &http.Cookie{Name: l.cookie, Value: l.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, Path, http.StatusSeeOther)
		l.cfg.Ready(l.url())
	}
}

// use reports whether a key is the present key. A new key then replaces the used key.
func (l *Local) use(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !same(key, l.key) {
		return false
	}
	l.key = secret()
	return true
}
