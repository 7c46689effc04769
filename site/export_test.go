package site

import (
	"context"
	"net/http"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/versions"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/partitions"
	"github.com/samya-db/samya/site/store"
)

// TokenService returns the token service as gRPC calls it.
func (s *Site) TokenService() samyav1.TokenServiceServer { return tokens{Site: s} }

// EntityService returns the entity service as gRPC calls it.
func (s *Site) EntityService() samyav1.EntityServiceServer { return entities{Site: s} }

// ClusterService returns the cluster service as gRPC calls it.
func (s *Site) ClusterService() samyav1.ClusterServiceServer { return cluster{Site: s} }

// Waiting is the number of inputs that wait for the engine.
func (s *Site) Waiting() int { return s.engine.Waiting() }

// Readyz returns the answer of /readyz.
func (s *Site) Readyz(ctx context.Context) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	s.readyz(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
	return rec
}

// MaxRequestBytes is the longest message that a site takes.
const MaxRequestBytes = maxRequestBytes

// Follow is the loop of a watch.
var Follow = follow

// ParseWatchToken reads a resume token and writes it again.
func ParseWatchToken(text string) (again string, err error) {
	t, err := parseWatchToken(text)
	if err != nil || t == (watchToken{}) {
		return "", err
	}
	return t.String(), nil
}

// StreamWindow is the largest number of calls of a stream without an answer.
const StreamWindow = streamWindow

// The bounds of a message of answers: in answers, and in bytes of failures.
const (
	MaxReplies   = maxReplies
	FailureBytes = failureBytes
)

// Starter is the part of the engine that a stream needs.
type Starter = starter

// ServeStream serves a stream at site us, with the given engine and window, until the
// stream ends. The site stops when closing is closed.
func ServeStream(e Starter, window int, closing <-chan struct{}, rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]) error {
	s := &Site{cfg: Config{Config: node.Config{Name: "us"}}}
	s.speaks.Store(new(versions.Speaker))
	s.sites.Store(&memberSet{version: 1, sites: []core.SiteID{"us"}})
	s.metrics = newMetrics(s)
	st := newStream(s, e)
	st.Window, st.Stopping = window, closing
	return st.Serve(rpc)
}

// Inspected is site us of a cluster, with stats as the figures of its partitions.
func Inspected(members []core.SiteID, stats func() partitions.Stats) (samyav1.ClusterServiceServer, prometheus.Collector) {
	s := &Site{cfg: Config{Config: node.Config{Name: "us"}}, founded: store.Members{Version: 1}, inspect: stats}
	s.sites.Store(&memberSet{version: 1, sites: members})
	return cluster{Site: s}, &partitionMetrics{site: s}
}

// Framed is the number of connections of frames.
func (s *Site) Framed() int { return s.framed.Open() }
