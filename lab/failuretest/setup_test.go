package failuretest

// setup is the means by which the sites of a cluster get tokens: the protocol of their
// instances, and the strategy. The strategy says whether sites ask each other first.
type setup struct{ protocol, strategy string }

// String names the setup.
func (s setup) String() string { return s.protocol + "-" + s.strategy }

// args are the flags of a site.
func (s setup) args() []string { return []string{"--protocol", s.protocol, "--strategy", s.strategy} }

// fewSetups are the setups of a test's short form, allSetups of its long form.
var (
	fewSetups = []setup{{"auto", "instance"}, {"auto", "transfer"}, {"majority", "transfer"}}
	allSetups = []setup{
		{"majority", "instance"}, {"star", "instance"}, {"auto", "instance"}, {"majority", "transfer"}, {"auto", "transfer"},
	}
)
