package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// watchType is the media type of a watch: newline-delimited JSON.
const watchType = "application/x-ndjson"

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

// alive is the line of a sign of life.
type alive struct{}

// watchEntity writes states as lines of JSON until the entity is deleted or the client
// has gone.
func (a *api) watchEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.WatchEntityRequest{Name: entity}
	if _, err := readQuery(r, in); err != nil {
		return err
	}
	return watch(w, r, in, func(tell func(line any) error) error {
		return a.Service.Watch(r.Context(), in, func(m *samyav1.WatchEntityResponse) error {
			s := statusJSON(m.GetEntity(), m.GetUsage())
			return tell(watched{&s, m.GetDeleted(), m.GetResumeToken()})
		})
	})
}

// watchMembers writes lists of the members as lines of JSON until the client has gone, and
// empty objects as signs of life.
func (a *api) watchMembers(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.WatchMembersRequest{}
	if _, err := readQuery(r, in); err != nil {
		return err
	}
	return watch(w, r, in, func(tell func(line any) error) error {
		return a.Service.TellMembers(r.Context(), func(m *samyav1.WatchMembersResponse) error {
			if m.GetList() == nil {
				return tell(alive{})
			}
			return tell(membersJSON(m.GetList()))
		})
	})
}

// watch answers a request with the lines that run tells. An error before the first line is
// a problem document.
func watch(w http.ResponseWriter, r *http.Request, in proto.Message, run func(tell func(line any) error) error) error {
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
	err := run(tell)
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
