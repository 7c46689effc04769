package books

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// of returns books, which are whole.
func of(t interface{ Fatal(args ...any) }, left, net, aside Tokens) *Books {
	b, err := Of(left, net, aside)
	if err != nil {
		t.Fatal(err)
	}
	return &b
}

// TestOperations: the effect of each operation on the balances.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		name                     string
		do                       func(b *Books) error
		left, net, aside, escrow Tokens
	}{
		{"take", func(b *Books) error { return b.Take(100) }, 0, 150, 7, 157},
		{"return", func(b *Books) error { return b.Return(60) }, 160, -10, 7, 157},
		{"return nothing", func(b *Books) error { return b.Return(0) }, 100, 50, 7, 157},
		{"pledge", func(b *Books) error { return b.Pledge(100) }, 0, 50, 107, 157},
		{"pledge what is lacking", func(b *Books) error { return b.Pledge(-5) }, 105, 50, 2, 157},
		{"withdraw", func(b *Books) error { return b.Withdraw(7) }, 107, 50, 0, 157},
		{"grant of more", func(b *Books) error { return b.Grant(7, 30) }, 130, 50, 0, 180},
		{"grant of a debt", func(b *Books) error { return b.Grant(7, -130) }, -30, 50, 0, 20},
		{"recount what is not in use", func(b *Books) error { return b.Recount(60) }, 100, -10, 7, 97},
		{"recount what was not counted", func(b *Books) error { return b.Recount(-60) }, 100, 110, 7, 217},
		{"debit", func(b *Books) error { return b.Debit(100) }, 0, 50, 7, 57},
		{"credit", func(b *Books) error { return b.Credit(3) }, 103, 50, 7, 160},
		{"shift beyond what is left", func(b *Books) error { _, err := b.Shift(300); return err }, -200, 350, 7, 157},
		{"shift back", func(b *Books) error { _, err := b.Shift(-50); return err }, 150, 0, 7, 157},
	} {
		b := of(t, 100, 50, 7)
		if err := c.do(b); err != nil || b.Closed() {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := [...]Tokens{b.Left(), b.Net(), b.Aside(), b.Escrow()}; got != [...]Tokens{c.left, c.net, c.aside, c.escrow} {
			t.Errorf("%s: left, net, aside and escrow are %d", c.name, got)
		}
	}
}

// TestBounds: an operation beyond its bound changes no balance, and the books refuse all
// operations from then on.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name             string
		left, net, aside Tokens
		do               func(b *Books) error
	}{
		{"take more than is left", 5, 0, 0, func(b *Books) error { return b.Take(6) }},
		{"take of a debt", -5, 0, 0, func(b *Books) error { return b.Take(1) }},
		{"take nothing", 5, 0, 0, func(b *Books) error { return b.Take(0) }},
		{"take less than nothing", 5, 0, 0, func(b *Books) error { return b.Take(-1) }},
		{"take beyond what may be out", 5, most, 0, func(b *Books) error { return b.Take(1) }},
		{"return less than nothing", 5, 5, 0, func(b *Books) error { return b.Return(-1) }},
		{"return without room", most, 5, 0, func(b *Books) error { return b.Return(1) }},
		{"return far below what is out", 0, -most, 0, func(b *Books) error { return b.Return(1) }},
		{"pledge more than is left", 5, 0, 0, func(b *Books) error { return b.Pledge(6) }},
		{"pledge of a debt", -5, 0, 0, func(b *Books) error { return b.Pledge(1) }},
		{"pledge without room", most, 0, 0, func(b *Books) error { return b.Pledge(-1) }},
		{"withdraw without room", most, 0, 5, func(b *Books) error { return b.Withdraw(5) }},
		{"grant without room", most, 0, 0, func(b *Books) error { return b.Grant(0, 1) }},
		{"grant of a debt without room", -most, 0, 0, func(b *Books) error { return b.Grant(0, -1) }},
		{"grant beyond all bounds", 1, 0, 0, func(b *Books) error { return b.Grant(0, 1<<62) }},
		{"recount beyond what may be out", 5, most, 0, func(b *Books) error { return b.Recount(-1) }},
		{"recount beyond all bounds", 5, 0, 0, func(b *Books) error { return b.Recount(1 << 62) }},
		{"debit more than is left", 5, 0, 0, func(b *Books) error { return b.Debit(6) }},
		{"debit nothing", 5, 0, 0, func(b *Books) error { return b.Debit(0) }},
		{"credit nothing", 5, 0, 0, func(b *Books) error { return b.Credit(0) }},
		{"credit without room", most, 0, 0, func(b *Books) error { return b.Credit(1) }},
		{"credit beyond all bounds", 1, 0, 0, func(b *Books) error { return b.Credit(1 << 62) }},
		{"scatter more than is left", 5, 0, 0, func(b *Books) error { return b.Scatter(make([]Stripe, 2), 3) }},
		{"scatter less than nothing", 5, 0, 0, func(b *Books) error { return b.Scatter(make([]Stripe, 2), -1) }},
	} {
		b := of(t, c.left, c.net, c.aside)
		err := c.do(b)
		if e, ok := errors.AsType[*brokenError](err); !ok || e.Closed || !b.Closed() || e.Left != c.left || e.Net != c.net || e.Aside != c.aside {
			t.Errorf("%s: %v, closed: %v", c.name, err, b.Closed())
		}
		if b.Left() != c.left || b.Net() != c.net {
			t.Errorf("%s: the balances changed: %+v", c.name, b)
		}
	}
}

// TestOf: balances out of bounds are not restored.
func TestOf(t *testing.T) {
	for _, c := range [][3]Tokens{{most + 1, 0, 0}, {0, -most - 1, 0}, {0, 0, most + 1}} {
		if _, err := Of(c[0], c[1], c[2]); err == nil || !strings.Contains(err.Error(), "cannot restore") {
			t.Errorf("%d: %v", c, err)
		}
	}
}

// TestClosed: closed books refuse every operation, and stay as they are.
func TestClosed(t *testing.T) {
	for name, do := range map[string]func(b *Books) error{
		"take":     func(b *Books) error { return b.Take(1) },
		"return":   func(b *Books) error { return b.Return(1) },
		"pledge":   func(b *Books) error { return b.Pledge(1) },
		"withdraw": func(b *Books) error { return b.Withdraw(1) },
		"grant":    func(b *Books) error { return b.Grant(1, 1) },
		"debit":    func(b *Books) error { return b.Debit(1) },
		"credit":   func(b *Books) error { return b.Credit(1) },
		"recount":  func(b *Books) error { return b.Recount(1) },
		"shift":    func(b *Books) error { _, err := b.Shift(1); return err },
		"scatter":  func(b *Books) error { return b.Scatter(make([]Stripe, 2), 1) },
		"gather":   func(b *Books) error { _, _, _, err := b.Gather(make([]Stripe, 2)); return err },
	} {
		b := of(t, 10, 10, 10)
		b.Close()
		before := *b
		e, ok := errors.AsType[*brokenError](do(b))
		if !ok || !e.Closed || !strings.Contains(e.Error(), "cannot "+name) || *b != before || !b.Closed() || b.Aside() != 0 || b.Escrow() != 0 {
			t.Errorf("%s: %v; %+v, was %+v", name, e, b, before)
		}
	}
}

// TestEscrow runs random operations on books and their stripes: every operation keeps to
// its bound or is refused, and requests leave the escrow as it is.
func TestEscrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := of(t, Tokens(rapid.Int64Range(-20, 50).Draw(t, "left")), 0, 0)
		stripes := make([]Stripe, 3)
		escrow, scattered := b.Escrow(), false
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			n := Tokens(rapid.Int64Range(-3, 20).Draw(t, "tokens"))
			before := *b
			var err error
			switch op := rapid.IntRange(0, 8).Draw(t, "operation"); {
			case scattered:
				s := &stripes[op%3]
				had, net := s.Left(), s.Net()
				switch {
				case op < 6 && n >= 1 && n <= had:
					err = s.Take(n)
				case op < 8 && n >= 1:
					err = s.Return(n)
				default:
					var taken, returned Tokens
					taken, returned, _, err = b.Gather(stripes)
					if b.Net() != before.Net()+taken-returned || b.Escrow() != escrow {
						t.Fatalf("gathered %d taken and %d returned into %+v, had %+v", taken, returned, b, before)
					}
					scattered = false
				}
				if s.Left()+s.Net() != had+net && scattered {
					t.Fatalf("a stripe has %d and %d, had %d and %d", s.Left(), s.Net(), had, net)
				}
			case op == 0 && n >= 1 && n <= b.Left():
				err = b.Take(n)
			case op == 1 && n >= 0:
				err = b.Return(n)
			case op == 2 && n <= max(0, b.Left()):
				err = b.Pledge(n)
			case op == 3:
				err = b.Withdraw(b.Aside())
			case op == 4:
				offer := b.Aside()
				err = b.Grant(offer, n)
				escrow += n - offer
			case op == 5 && n >= 1 && n <= b.Left():
				err = b.Debit(n)
				escrow -= n
			case op == 6 && n >= 1:
				err = b.Credit(n)
				escrow += n
			case op == 7:
				_, err = b.Shift(n)
			case op == 8 && b.Left() >= 3:
				err = b.Scatter(stripes, b.Left()/3)
				scattered = err == nil
			}
			if err != nil || b.Closed() {
				t.Fatalf("%+v: %v", before, err)
			}
			sum := b.Left() + b.Net() + b.Aside()
			for i := range stripes {
				sum += stripes[i].Left() + stripes[i].Net()
			}
			if sum != escrow {
				t.Fatalf("%+v: the balances add up to %d, the escrow is %d", b, sum, escrow)
			}
		}
	})
}

// TestStripeBounds: a stripe refuses an operation beyond its bound. The books that gather
// the stripe are then broken.
func TestStripeBounds(t *testing.T) {
	for name, do := range map[string]func(s *Stripe) error{
		"take more than is left":   func(s *Stripe) error { return s.Take(6) },
		"take nothing":             func(s *Stripe) error { return s.Take(0) },
		"return nothing":           func(s *Stripe) error { return s.Return(0) },
		"return without room":      func(s *Stripe) error { return s.Return(MostInStripe) },
		"a balance that was moved": func(s *Stripe) error { s.left.Add(1); return s.Take(1) },
	} {
		b, stripes := of(t, 11, 0, 0), make([]Stripe, 2)
		if err := b.Scatter(stripes, 5); err != nil {
			t.Fatal(err)
		}
		err := do(&stripes[1])
		if _, ok := errors.AsType[*brokenError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, _, gathered := b.Gather(stripes); !errors.Is(gathered, err) {
			t.Errorf("%s: gathered: %v, want %v", name, gathered, err)
		}
	}
	b, stripes := of(t, 20, 0, 0), make([]Stripe, 2)
	if err := errors.Join(b.Scatter(stripes, 5), b.Scatter(stripes, 5)); err == nil {
		t.Error("stripes that hold tokens are given more")
	}
}

// TestGather: the operations of stripes are in the books afterwards, once.
func TestGather(t *testing.T) {
	b, stripes := of(t, 20, 4, 0), make([]Stripe, 2)
	if err := errors.Join(b.Scatter(stripes, 8), stripes[0].Take(8), stripes[1].Return(3), stripes[1].Take(1)); err != nil {
		t.Fatal(err)
	}
	if b.Left() != 4 || b.Escrow() != 8 || stripes[0].Left() != 0 || stripes[1].Left() != 10 || stripes[1].Net() != -2 || stripes[1].Operations() != 2 {
		t.Errorf("scattered: %+v, %+v", b, stripes)
	}
	taken, returned, operations, err := b.Gather(stripes)
	if err != nil || taken != 9 || returned != 3 || operations != 3 || b.Left() != 14 || b.Net() != 10 || b.Escrow() != 24 {
		t.Errorf("gathered %d taken, %d returned in %d operations, %v: %+v", taken, returned, operations, err, b)
	}
	whole := *b
	if _, _, _, err := b.Gather(stripes); err != nil || !reflect.DeepEqual(whole, *b) {
		t.Errorf("gathered twice: %v, %+v", err, b)
	}
}
