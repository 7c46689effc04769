package predict

import "fmt"

// Replace returns a model of that name to take the place of old in a running site. If old
// has the same name and options its state is kept. Otherwise the new model is rebuilt
// from the newest bins that old keeps. Models that keep bins keep at least sixteen;
// RandomWalk and MeanRate keep a single bin. It fails with ErrUnknownModel or ErrOption;
// old is never changed.
func Replace(old Durable, name string, options Options) (Durable, error) {
	m, err := ByName(name, options)
	if err != nil {
		return nil, err
	}
	state, err := old.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("take over the state: %w", err)
	}
	if m.UnmarshalBinary(state) == nil {
		return m, nil
	}
	for _, bin := range old.recent() {
		m.Observe(bin)
	}
	return m, nil
}

// Fallbacks returns how many forecasts of a model were not finite and were replaced by
// the newest bin. Anything but 0 is worth a look.
func Fallbacks(m Durable) uint64 { return m.fallbacks() }
