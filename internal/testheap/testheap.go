// Package testheap makes the binary of a test collect garbage less often: the memory is
// there, and collections took a quarter of the processor's time. Import it for its
// effect:
//
//	import _ "github.com/samya-db/samya/internal/testheap"
//
// It is for tests that keep to their own process. The environment stays as it is, so that
// programs started by tests collect as they do for users. It is not for tests of memory.
package testheap

import (
	"os"
	"runtime/debug"
)

// percent is the growth of the heap from collection to collection, in percent of the live heap.
const percent = 400

func init() { //nolint:gochecknoinits // it is imported for this
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
