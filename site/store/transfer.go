package store

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/transfer"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
)

// encodeTransfer returns nil for the zero state, which most entities have.
func encodeTransfer(s *transfer.State) *storev1.TransferState {
	if s.Reserved == 0 && len(s.Debits) == 0 && len(s.Credits) == 0 {
		return nil
	}
	p := &storev1.TransferState{Reserved: s.Reserved}
	for _, d := range s.Debits {
		p.Debits = append(p.Debits, &storev1.TransferDebit{
			Receiver: string(d.Receiver), Asked: d.Asked, Seq: d.Seq, Amount: int64(d.Amount),
		})
	}
	for _, c := range s.Credits {
		p.Credits = append(p.Credits, &storev1.TransferCredit{Donor: string(c.Donor), Seq: c.Seq})
	}
	return p
}

func decodeTransfer(p *storev1.TransferState) transfer.State {
	s := transfer.State{Reserved: p.GetReserved()}
	for _, d := range p.GetDebits() {
		s.Debits = append(s.Debits, transfer.Debit{
			Receiver: avantan.SiteID(d.GetReceiver()), Asked: d.GetAsked(), Seq: d.GetSeq(), Amount: avantan.Tokens(d.GetAmount()),
		})
	}
	for _, c := range p.GetCredits() {
		s.Credits = append(s.Credits, transfer.Credit{Donor: avantan.SiteID(c.GetDonor()), Seq: c.GetSeq()})
	}
	return s
}
