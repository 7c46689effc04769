package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var readHandlers = map[string]handler{
	"GetEntity":   (*api).getEntity,
	"WatchEntity": (*api).watchEntity,
	"CutEntity":   (*api).cutEntity,
}

// watchType is the media type of a watch: newline-delimited JSON.
const watchType = "application/x-ndjson"

// consistencies are the consistencies of a read, by their names in the API.
var consistencies = map[string]samyav1.Consistency{
	"":        samyav1.Consistency_CONSISTENCY_UNSPECIFIED,
	"local":   samyav1.Consistency_CONSISTENCY_LOCAL,
	"bounded": samyav1.Consistency_CONSISTENCY_BOUNDED,
	"exact":   samyav1.Consistency_CONSISTENCY_EXACT,
}

func (a *api) getEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.GetEntityRequest{Name: entity}
	q, err := readQuery(r, in, "consistency")
	if err != nil {
		return err
	}
	var known bool
	if in.Consistency, known = consistencies[q["consistency"]]; !known {
		return apierr.Invalid("consistency", "must be one of local, bounded, exact")
	}
	return answer(w, r, http.StatusOK, in, a.Service.GetEntity,
		func(out *samyav1.GetEntityResponse) entityStatus { return statusJSON(out.GetEntity(), out.GetUsage()) })
}

func (a *api) cutEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.CutEntityRequest{Name: entity}
	if _, err := readQuery(r, in); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.CutEntity, cutJSON)
}

// watched is a line of a watch. A watch that ends without a deletion has failedWatch as
// its last line.
type watched struct {
	*entityStatus
	Deleted     bool   `json:"deleted"`
	ResumeToken string `json:"resume_token"`
}

// failedWatch is the last line of a watch that ends with a problem.
type failedWatch struct {
	Problem apierr.Problem `json:"problem"`
}

// watchEntity writes states as lines of JSON until the entity is deleted or the client
// has gone. An error before the first line is a problem document.
func (a *api) watchEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.WatchEntityRequest{Name: entity}
	if _, err := readQuery(r, in); err != nil {
		return err
	}
	lines := http.NewResponseController(w)
	began := false
	tell := func(line any) error {
		b, err := json.Marshal(line)
		if err != nil {
			return apierr.Wrap(apierr.Internal, err)
		}
		if !began {
			began = true
			w.Header().Set("Content-Type", watchType)
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusOK)
		}
		// A watch outlives the time of other answers; each line has that time. Where no
		// deadline can be set there is no connection to protect.
		_ = lines.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.Write(append(b, '\n')); err != nil {
			return apierr.Wrap(apierr.Canceled, err)
		}
		if err := lines.Flush(); err != nil {
			return apierr.Wrap(apierr.Canceled, err)
		}
		return nil
	}
	if err := access.Permit(r.Context(), in); err != nil {
		return err
	}
	err := a.Service.Watch(r.Context(), in,
		func(m *samyav1.WatchEntityResponse) error {
			s := statusJSON(m.GetEntity(), m.GetUsage())
			return tell(watched{&s, m.GetDeleted(), m.GetResumeToken()})
		})
	if over := access.Over(r.Context()); over != nil {
		err = over
	}
	if err == nil || !began {
		return err
	}
	// The answer has begun: its last line has to tell the problem to a client that is
	// still there.
	_ = tell(failedWatch{apierr.From(err).Problem(r.URL.EscapedPath())})
	return nil
}
