// Package backends registers all engines that the laboratory's partitioned stores may
// have: the engines of package engine, and pebble. The product does without pebble and its
// modules.
package backends

import (
	"github.com/samya-db/samya/kvpart/engine"
	_ "github.com/samya-db/samya/kvpart/engine/bbolt" // each registers itself
	_ "github.com/samya-db/samya/kvpart/engine/btree"
	_ "github.com/samya-db/samya/kvpart/engine/hash"
)

func init() { engine.Register("pebble", engine.Factory{Open: openPebble, Durable: true}) }
