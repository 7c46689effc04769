package store

import (
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"google.golang.org/protobuf/proto"
)

func (s *Store) encodeForecasts(r *stored.Records) error {
	for _, name := range r.Deleted {
		s.batch.Delete(bucketForecasts, s.named(name))
	}
	for i := range r.Forecasts {
		f := &r.Forecasts[i]
		raw, err := encodeForecast(f)
		if err := s.put(bucketForecasts, s.named(f.Name), raw, err, "the forecast of", f.Name); err != nil {
			return err
		}
	}
	return nil
}

func encodeForecast(f *stored.Forecast) ([]byte, error) {
	return proto.Marshal(&storev1.Forecast{
		Generation: f.Generation, Model: f.Model, Bin: uint64(f.Bin), Wall: f.Wall, State: f.State,
	})
}

// decodeForecast never fails: a site starts without an unreadable forecast, and the
// core counts the record without a state.
func decodeForecast(name string, raw []byte) (stored.Forecast, error) {
	var p storev1.Forecast
	if err := proto.Unmarshal(raw, &p); err != nil {
		return stored.Forecast{Name: name}, nil //nolint:nilerr // see above
	}
	return stored.Forecast{
		Name: name, Generation: p.GetGeneration(), Model: p.GetModel(), Bin: core.Tick(p.GetBin()),
		Wall: p.GetWall(), State: p.GetState(),
	}, nil
}
