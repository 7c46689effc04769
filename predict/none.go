package predict

var _ Durable = none{}

// none is the model None. It keeps nothing.
type none struct{}

func (none) Observe(Bin) {}

func (none) Forecast() Forecast { return Forecast{} }

func (none) stateOptions() Options { return Options{} }

func (none) recent() []Bin { return nil }

func (none) fallbacks() uint64 { return 0 }

func (none) MarshalBinary() ([]byte, error) {
	return marshal(None, none{}.stateOptions(), func(*codec) {}), nil
}

func (none) UnmarshalBinary(data []byte) error {
	return unmarshal(None, none{}.stateOptions(), data, func(*codec) {})
}
