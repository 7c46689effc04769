package predict

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// stateVersion changes with every change of the stored format.
const stateVersion = 6

// codec writes a state or reads it back. Each model names its fields once, in a single
// method, so that writing and reading always agree. Reading never trusts: numbers must be
// finite and within their bounds, or the whole state is refused.
type codec struct {
	reading bool
	buf     []byte
	failed  bool
}

func (c *codec) word(w *uint64) {
	switch {
	case !c.reading:
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *w)
	case len(c.buf) < 8:
		c.failed, c.buf, *w = true, nil, 0
	default:
		*w, c.buf = binary.LittleEndian.Uint64(c.buf), c.buf[8:]
	}
}

// float is a number within the range of float64s of tokens, and of their squares.
func (c *codec) float(f *float64) {
	w := math.Float64bits(*f)
	c.word(&w)
	if c.reading {
		*f = math.Float64frombits(w)
		if !(math.Abs(*f) <= 1e300) {
			c.failed, *f = true, 0
		}
	}
}

// value is a number or, for a missing bin, NaN.
func (c *codec) value(f *float64) {
	w := math.Float64bits(*f)
	c.word(&w)
	if c.reading {
		if *f = math.Float64frombits(w); math.Abs(*f) > mostTokens*MaxHorizon {
			c.failed, *f = true, 0
		}
	}
}

// small is a float32 that may be NaN.
func (c *codec) small(f *float32) {
	c.bits(f)
	if c.reading && math.Abs(float64(*f)) > mostTokens*MaxHorizon {
		c.failed, *f = true, 0
	}
}

// single is a finite float32.
func (c *codec) single(f *float32) {
	c.bits(f)
	if v := float64(*f); c.reading && (math.IsNaN(v) || math.IsInf(v, 0)) {
		c.failed, *f = true, 0
	}
}

func (c *codec) bits(f *float32) {
	switch {
	case !c.reading:
		c.buf = binary.LittleEndian.AppendUint32(c.buf, math.Float32bits(*f))
	case len(c.buf) < 4:
		c.failed, c.buf, *f = true, nil, 0
	default:
		*f, c.buf = math.Float32frombits(binary.LittleEndian.Uint32(c.buf)), c.buf[4:]
	}
}

// half is the upper half of a float32, which must be at most twice mostTokens.
func (c *codec) half(n *uint16) {
	switch {
	case !c.reading:
		c.buf = binary.LittleEndian.AppendUint16(c.buf, *n)
	case len(c.buf) < 2:
		c.failed, c.buf, *n = true, nil, 0
	default:
		*n, c.buf = binary.LittleEndian.Uint16(c.buf), c.buf[2:]
		if !(math.Abs(float64(math.Float32frombits(uint32(*n)<<16))) <= 2*mostTokens) {
			c.failed, *n = true, 0
		}
	}
}

func (c *codec) floats(fs ...*float64) {
	for _, f := range fs {
		c.float(f)
	}
}

func (c *codec) array(fs []float64) {
	for i := range fs {
		c.float(&fs[i])
	}
}

// integer is within low and high.
func (c *codec) integer(n *int, low, high int) {
	w := uint64(*n)
	c.word(&w)
	if c.reading {
		if *n = int(w); *n < low || *n > high {
			c.failed, *n = true, low
		}
	}
}

func (c *codec) flag(b *bool) {
	n := 0
	if *b {
		n = 1
	}
	c.integer(&n, 0, 1)
	*b = n == 1
}

// header returns the version, the model and its options.
func header(name string, o Options) []byte {
	return fmt.Appendf(nil, "samya-forecast/%d %s %v %d %v %d\n", stateVersion, name, o.Weight, o.Horizon, o.Quantile, o.Day)
}

// marshal stores the fields that state names.
func marshal(name string, o Options, state func(*codec)) []byte {
	c := &codec{buf: header(name, o)}
	state(c)
	return binary.LittleEndian.AppendUint32(c.buf, crc32.ChecksumIEEE(c.buf))
}

// unmarshal reads these fields back. After an error the caller must begin anew.
func unmarshal(name string, o Options, data []byte, state func(*codec)) error {
	h := header(name, o)
	if len(data) < len(h)+4 || string(data[:len(h)]) != string(h) {
		return fmt.Errorf("%w: no state of %s with these options, version %d", errState, name, stateVersion)
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return fmt.Errorf("%w: its checksum does not match", errState)
	}
	c := &codec{reading: true, buf: body[len(h):]}
	state(c)
	if c.failed || len(c.buf) > 0 {
		return fmt.Errorf("%w: damaged", errState)
	}
	return nil
}
