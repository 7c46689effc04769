package seats

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// Alive is the time between two signs of life of a watch of the members.
	Alive = 5 * time.Second
	// Silence is how long a watch may tell nothing before it counts as broken.
	Silence = 3 * Alive
	// tellPause is the shortest time between two lists.
	tellPause = 100 * time.Millisecond
)

// Look returns the present list, and two channels. The next change closes either, even if
// it comes during the look.
type Look func(context.Context) (list *samyav1.ListMembersResponse, changed [2]<-chan struct{}, err error)

// Tell serves a watch of the members: it sends the list at once, again after each change,
// and signs of life in between. It returns the error of look or send, or why ctx ended.
func Tell(ctx context.Context, look Look, send func(*samyav1.WatchMembersResponse) error) error {
	alive := time.NewTicker(Alive)
	defer alive.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	var told *samyav1.ListMembersResponse
	quiet := false
	for {
		select {
		case <-ctx.Done():
			return apierr.Wrap(apierr.Canceled, context.Cause(ctx))
		case <-pause.C:
		}
		list, changed, err := look(ctx)
		if err != nil {
			return err
		}
		switch {
		case told == nil || !proto.Equal(told, list):
			err = send(&samyav1.WatchMembersResponse{List: list})
			told = list
		case quiet:
			err = send(&samyav1.WatchMembersResponse{})
		}
		if err != nil {
			return err
		}
		quiet = false
		select {
		case <-ctx.Done():
		case <-changed[0]:
		case <-changed[1]:
		case <-alive.C:
			quiet = true
		}
		pause.Reset(tellPause)
	}
}
