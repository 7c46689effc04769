package compare

import (
	"errors"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		fake    *fake
		forgets bool
		want    error
	}{
		"does its job":            {&fake{}, false, nil},
		"grants beyond":           {&fake{beyond: true}, false, ErrLimit},
		"forgets ids":             {&fake{forgetful: true}, false, ErrLimit},
		"forgets ids, as it says": {&fake{forgetful: true}, true, nil},
		"forgets, grants beyond":  {&fake{forgetful: true, beyond: true}, true, ErrLimit},
		"books do not match":      {&fake{greedy: true}, false, ErrBooks},
		"fails":                   {&fake{err: errFake, failAfter: 3}, false, errFake},
	} {
		for _, batch := range []int{1, batchSize} {
			books, d := ready(t, c.fake)
			c.fake.calls = 0
			err := check(t.Context(), books, d, &About{Forgets: c.forgets}, Way{Callers: 16, Batch: batch}, "acme/scarce")
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%s, batches of %d: %v, want %v", name, batch, err, c.want)
			}
		}
	}
}

func TestBalance(t *testing.T) {
	names := []string{"a", "b"}
	if err := balance(names, []int64{10, 10}, []int64{8, 10}, []int64{2, 0}); err != nil {
		t.Error(err)
	}
	for _, after := range [][]int64{{8, 9}, {9, 10}} {
		if err := balance(names, []int64{10, 10}, after, []int64{2, 0}); !errors.Is(err, ErrBooks) {
			t.Errorf("left %v: %v, want %v", after, err, ErrBooks)
		}
	}
}
