package libra

// Decided returns how many decisions Step has made and not returned yet.
func (p *Plan) Decided() int { return len(p.decided) }

// Benefit returns the benefit that applies.
func (p *Plan) Benefit() float64 { return p.opt.Benefit }

// PartFill is the load of a part as a share of λ/2.
const PartFill = partFill
