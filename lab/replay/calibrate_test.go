package replay

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestCalibrate: an acquire takes some processor time, and a calibration ends with
// its context.
func TestCalibrate(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	service, err := Calibrate(t.Context())
	if err != nil || service <= 0 || service > 10*time.Millisecond {
		t.Errorf("%v, %v", service, err)
	}
	t.Log(service)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Calibrate(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}
