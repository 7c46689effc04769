package store

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
)

// putForecasts needs no room between pages: the values are replaced by others
// of about the same length.
func (s *Store) putForecasts(tx *bolt.Tx, r *core.Records) error {
	b := tx.Bucket(bucketForecasts)
	for _, name := range r.Deleted {
		if err := b.Delete([]byte(name)); err != nil {
			return fmt.Errorf("deleting the forecast of %q: %w", name, err)
		}
	}
	for i := range r.Forecasts {
		raw, err := encodeForecast(&r.Forecasts[i])
		if err != nil {
			return fmt.Errorf("encoding the forecast of %q: %w", r.Forecasts[i].Name, err)
		}
		if err := b.Put([]byte(r.Forecasts[i].Name), raw); err != nil {
			return fmt.Errorf("storing the forecast of %q: %w", r.Forecasts[i].Name, err)
		}
	}
	return nil
}

func encodeForecast(f *core.ForecastRecord) ([]byte, error) {
	return proto.Marshal(&storev1.Forecast{
		Generation: f.Generation, Model: f.Model, Bin: uint64(f.Bin), Wall: f.Wall, State: f.State,
	})
}

// decodeForecast never fails: a site starts without what it cannot read, and the
// core counts the record that has no state.
func decodeForecast(name string, raw []byte) (core.ForecastRecord, error) {
	var p storev1.Forecast
	if err := proto.Unmarshal(raw, &p); err != nil {
		return core.ForecastRecord{Name: name}, nil //nolint:nilerr // see above
	}
	return core.ForecastRecord{
		Name: name, Generation: p.GetGeneration(), Model: p.GetModel(), Bin: core.Tick(p.GetBin()),
		Wall: p.GetWall(), State: p.GetState(),
	}, nil
}
