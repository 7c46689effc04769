//go:build !linux

package store

import bolt "go.etcd.io/bbolt"

func dropPages(*bolt.DB) error { return nil }

func dropPagesOf(*bolt.Tx) {}
