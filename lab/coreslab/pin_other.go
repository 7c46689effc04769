//go:build !linux

package coreslab

import (
	"errors"
	"time"
)

// pin tells that processes cannot be kept on some cores here.
func pin(int) (func() error, error) {
	return nil, errors.New("a comparison with a real site needs Linux")
}

// busy is unknown here.
func busy(int) (time.Duration, error) { return 0, nil }
