package sim

// A long run that has not done enough goes on for so long, so many times.
const (
	extension  = 20 * second
	extensions = 120
)

// short reports whether a long run has not done enough yet.
func (s *sim) short() bool {
	s.report.Micros = s.now
	return s.report.Trivial(s.o) != ""
}

// stretch makes a run longer that has not done enough, and has more of the missing events
// happen.
func (s *sim) stretch(more int) {
	s.faultsEnd += extension
	s.extended = 1
	s.chances.underWay = 0
	if s.report.CrashesUnderWay == 0 {
		s.chances.underWay = 50
	}
	s.chances.lostAway, s.chances.late = min(s.chances.lostAway+100, 400), min(s.chances.late+100, 400)
	r := &s.report
	s.lacks = lacks{
		partial: r.Partial < minFeature, renewals: r.LeasesRenewed < minFeature,
		debts: r.DebtsPaid < minFeature, undone: r.Undone < minFeature,
		turns: r.InTurn < minFeature, slots: r.Divided > 0 && r.FromSlots < minFeature,
	}
	if r.Requests < minRequests && len(s.clients) < mostClients {
		for range newClients {
			s.addClient()
		}
	}
	if more == patience && r.Instances+r.StarDecided+r.RoundsBrought < minInstances {
		s.ease()
	}
}

const (
	// newClients is how many clients a run that lacks requests gets with each
	// extension, up to mostClients.
	newClients, mostClients = 8, 80
	// patience is after how many extensions a run gets better links and disks, if next to
	// nothing is ever decided.
	patience = 3
)

// lacks names the features that a run that goes on has shown too little.
type lacks struct{ partial, renewals, debts, undone, slots, turns bool }

// either is the usual number, or the number for a run that lacks something.
func either(lacks bool, usual, then int) int {
	if lacks {
		return then
	}
	return usual
}

// ease brings sites as close to each other as they are without faults, and has
// disks and links fail less.
func (s *sim) ease() {
	for i := range s.latency {
		for j := range s.latency[i] {
			s.latency[i][j] /= s.chances.far
		}
	}
	s.chances.far, s.chances.sync = 1, min(s.chances.sync, 20*millisecond)
	s.chances.drop, s.chances.delay = s.chances.drop/2, s.chances.delay/2
}
