package fake

import (
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// StreamOfStates is the stream on which a fake site tells states.
type StreamOfStates = samyav1.EntityService_WatchEntityServer

// Watched makes a site tell states on each further watch, and then call end.
func (f *Site) Watched(end func(StreamOfStates) error, states ...*samyav1.WatchEntityResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.OnWatch = func(_ *samyav1.WatchEntityRequest, stream StreamOfStates) error {
		for _, s := range states {
			if err := stream.Send(s); err != nil {
				return err
			}
		}
		return end(stream)
	}
}

// Stays makes a watch last until its caller ends it.
func Stays(stream StreamOfStates) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// Fails makes a watch end with err.
func Fails(err error) func(StreamOfStates) error { return func(StreamOfStates) error { return err } }

// WatchEntity implements samyav1.EntityServiceServer.
func (f *Site) WatchEntity(r *samyav1.WatchEntityRequest, stream samyav1.EntityService_WatchEntityServer) error {
	f.mu.Lock()
	watch := f.OnWatch
	f.mu.Unlock()
	if watch == nil {
		return apierr.NotFound(r.GetName())
	}
	return watch(r, stream)
}

// States makes a site tell the versions, a second apart, and nothing more.
func (f *Site) States(tokens *[]string, versions ...uint64) {
	f.OnWatch = func(r *samyav1.WatchEntityRequest, stream samyav1.EntityService_WatchEntityServer) error {
		*tokens = append(*tokens, r.GetResumeToken())
		for _, v := range versions {
			if err := stream.Send(State(f.Name, v)); err != nil {
				return err
			}
			select {
			case <-stream.Context().Done():
			case <-time.After(time.Second):
			}
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
}

// State is a state of an entity, as a watch at a site tells it.
func State(site string, version uint64) *samyav1.WatchEntityResponse {
	return &samyav1.WatchEntityResponse{
		Entity: Ent(100, 1, version), ResumeToken: site, Usage: &samyav1.Usage{Shares: []*samyav1.Share{{Site: site, Known: true}}},
	}
}
