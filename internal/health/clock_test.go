package health

import (
	"testing"
	"time"
)

func TestSkew(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	for _, off := range []time.Duration{-time.Minute, 0, time.Minute} {
		told := ClockTold(began.Add(50*time.Millisecond + off))
		if skew, known := Skew([]string{told}, began, 100*time.Millisecond); !known || skew != off {
			t.Errorf("off by %v: %v, %t", off, skew, known)
		}
	}
	for _, told := range [][]string{nil, {""}, {"x"}, {"-1"}, {"99999999999999999"}, {"1", "2"}} {
		if skew, known := Skew(told, began, 0); known {
			t.Errorf("%q tells %v", told, skew)
		}
	}
}
