package kvpart

// The tests of this package want these backends even where the files of kvpart_test are left
// out, as when a seeded bug is judged.
import (
	_ "github.com/samya-db/samya/kvpart/engine/bbolt"
	_ "github.com/samya-db/samya/kvpart/engine/hash"
)
