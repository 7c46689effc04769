package standby

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// pages is the HTTP server of a node that follows: health and metrics, at the address where
// the site serves once the node is active.
type pages struct{ server *http.Server }

const pagePatience = 5 * time.Second

func (n *node) serveStandby() (*pages, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(context.Background(), "tcp", n.cfg.Site.HTTP)
	if err != nil {
		return nil, fmt.Errorf("listening for HTTP: %w", err)
	}
	if n.cfg.Site.TLS != nil {
		l = n.cfg.Site.TLS.Listen(l, pagePatience)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(n)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, "not ready: node %s follows, another node of site %s is active\n", n.cfg.Node, n.cfg.Site.Name)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, EnableOpenMetrics: true}))
	p := &pages{&http.Server{Handler: mux, ReadHeaderTimeout: pagePatience, ReadTimeout: pagePatience, MaxHeaderBytes: 16 << 10}}
	go func() {
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			n.log.Warn("the pages of the standby are gone", "error", err)
		}
	}()
	return p, nil
}

func (p *pages) close() { _ = p.server.Close() } // nothing rests on a page
