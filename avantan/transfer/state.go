package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// block is how many numbers of asks are reserved at a time.
const block = 32

// maxReserved bounds the numbers of asks; counting never reaches it.
const maxReserved = avantan.MaxNumber + block

// Validate reports a State that no Machine can have produced, so that a caller finds a
// damaged or foreign record before acting upon it.
func (s *State) Validate() error {
	switch {
	case s.Reserved > maxReserved:
		return fmt.Errorf("transfer: state: Reserved %d is too large", s.Reserved)
	case len(s.Debits) > avantan.MaxMembers || len(s.Credits) > avantan.MaxMembers:
		return fmt.Errorf("transfer: state: %d Debits and %d Credits, must be at most %d each",
			len(s.Debits), len(s.Credits), avantan.MaxMembers)
	case !increasing(s.Debits, func(d Debit) avantan.SiteID { return d.Receiver }):
		return errors.New("transfer: state: Debits must be sorted, each receiver once")
	case !increasing(s.Credits, func(c Credit) avantan.SiteID { return c.Donor }):
		return errors.New("transfer: state: Credits must be sorted, each donor once")
	}
	var sum avantan.Tokens
	for _, d := range s.Debits {
		switch {
		case d.Receiver == "" || d.Asked == 0 || d.Asked > avantan.MaxNumber || d.Seq > d.Asked:
			return fmt.Errorf("transfer: state: debit %+v is out of range", d)
		case d.Amount < 0 || d.Amount > 0 && d.Seq == 0:
			return fmt.Errorf("transfer: state: debit %+v holds no transfer", d)
		case d.Amount > math.MaxInt64-sum:
			return errors.New("transfer: state: the sum of the Debits does not fit 64 bits")
		}
		sum += d.Amount
	}
	for _, c := range s.Credits {
		if c.Donor == "" || c.Seq == 0 || c.Seq > avantan.MaxNumber {
			return fmt.Errorf("transfer: state: credit %+v is out of range", c)
		}
	}
	return nil
}

// Clone returns a deep copy.
func (s *State) Clone() State {
	return State{Reserved: s.Reserved, Debits: slices.Clone(s.Debits), Credits: slices.Clone(s.Credits)}
}

// InFlight returns the sum of all unacknowledged transfers of this site. If it does not
// go down, a receiver is unreachable.
func (s *State) InFlight() avantan.Tokens {
	var sum avantan.Tokens
	for _, d := range s.Debits {
		sum += d.Amount
	}
	return sum
}

// findDebit returns where the debit of a receiver is, or belongs.
func (s *State) findDebit(receiver avantan.SiteID) (int, bool) {
	return slices.BinarySearchFunc(s.Debits, receiver, func(d Debit, r avantan.SiteID) int { return cmp.Compare(d.Receiver, r) })
}

// findCredit returns where the credit of a donor is, or belongs.
func (s *State) findCredit(donor avantan.SiteID) (int, bool) {
	return slices.BinarySearchFunc(s.Credits, donor, func(c Credit, d avantan.SiteID) int { return cmp.Compare(c.Donor, d) })
}

// credited returns the number of the donor's last transfer credited here; 0 for none.
func (s *State) credited(donor avantan.SiteID) uint64 {
	if i, found := s.findCredit(donor); found {
		return s.Credits[i].Seq
	}
	return 0
}

// credit notes a transfer as credited.
func (s *State) credit(donor avantan.SiteID, seq uint64) {
	i, found := s.findCredit(donor)
	if !found {
		s.Credits = slices.Insert(s.Credits, i, Credit{Donor: donor})
	}
	s.Credits[i].Seq = seq
}
