package reads

import (
	"errors"
	"slices"
	"testing"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestTellsNothingOlder: a watch that goes on at another site passes over older states:
// an earlier generation, or an earlier version of the same generation. A deletion is
// told with any version, unless it deletes an earlier entity.
func TestTellsNothingOlder(t *testing.T) {
	for name, test := range map[string]struct {
		generation, version uint64
		deleted             bool
		told, done          bool
	}{
		"the same again":              {5, 3, false, true, false},
		"a later version":             {5, 4, false, true, false},
		"an earlier version":          {5, 2, false, false, false},
		"a later generation":          {6, 1, false, true, false},
		"an earlier generation":       {4, 9, false, false, false},
		"deleted":                     {5, 3, true, true, true},
		"deleted, no version":         {5, 0, true, true, true},
		"an earlier one's deletion":   {4, 9, true, false, false},
		"a later one's deletion":      {6, 0, true, true, true},
		"a later one, earlier figure": {6, 0, false, true, false},
	} {
		var told []string
		r := &relay{send: func(s *samyav1.WatchEntityResponse) error {
			told = append(told, s.GetResumeToken())
			return nil
		}}
		state := func(token string, generation, version uint64, deleted bool) *samyav1.WatchEntityResponse {
			return &samyav1.WatchEntityResponse{
				Entity: &samyav1.Entity{Name: "acme", Generation: generation, Version: version}, Deleted: deleted, ResumeToken: token,
			}
		}
		if done, err := r.tell(state("a", 5, 3, false)); done || err != nil {
			t.Fatalf("%s: the first state: %t, %v", name, done, err)
		}
		done, err := r.tell(state("b", test.generation, test.version, test.deleted))
		want, token := []string{"a"}, "a"
		if test.told {
			want, token = []string{"a", "b"}, "b"
		}
		if done != test.done || err != nil || !slices.Equal(told, want) || r.token != token {
			t.Errorf("%s: told %q, done %t, %v, goes on from %q; want %q, %t", name, told, done, err, r.token, want, test.done)
		}
	}
	refuses := errors.New("no")
	r := &relay{send: func(*samyav1.WatchEntityResponse) error { return refuses }}
	if _, err := r.tell(&samyav1.WatchEntityResponse{Deleted: true}); !errors.Is(err, refuses) {
		t.Errorf("a caller that takes no more: %v", err)
	}
}
