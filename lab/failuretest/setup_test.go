package failuretest

// setup is by what the sites of a cluster get tokens: the protocol of their
// instances, and the strategy that says whether they ask each other first.
type setup struct{ protocol, strategy string }

// String names it.
func (s setup) String() string { return s.protocol + "-" + s.strategy }

// args are the flags of a site.
func (s setup) args() []string { return []string{"--protocol", s.protocol, "--strategy", s.strategy} }

// fewSetups are those of the short form of a test, allSetups of the long one.
var (
	fewSetups = []setup{{"auto", "instance"}, {"auto", "transfer"}, {"majority", "transfer"}}
	allSetups = []setup{
		{"majority", "instance"}, {"star", "instance"}, {"auto", "instance"}, {"majority", "transfer"}, {"auto", "transfer"},
	}
)
