package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// Modules are the paper's modules (Section 4.1.1) as chosen: request handling
// (admission), and the parts of redistribution but for its policy. Prediction is package
// predict's, and the protocol can change at run time: see Protocol.
type Modules struct {
	Admission Admission
	Strategy  Strategy
	Offer     OfferPolicy
	Trigger   Trigger
	Want      Want
	Wait      avantan.Wait
}

// Names name modules.
type Names struct{ Admission, Strategy, Offer, Trigger, Want, Wait string }

// Choose returns the modules of the given names. Its errors name the field and wrap
// [ErrUnknownName].
func Choose(n Names) (Modules, error) {
	var m Modules
	errs := make([]error, 6)
	m.Admission, errs[0] = byName("admission", n.Admission, admissions)
	m.Strategy, errs[1] = byName("strategy", n.Strategy, strategies)
	m.Offer, errs[2] = byName("offer", n.Offer, offerPolicies)
	m.Trigger, errs[3] = byName("trigger", n.Trigger, triggers)
	m.Want, errs[4] = byName("want", n.Want, wants)
	m.Wait, errs[5] = byName("wait", n.Wait, waits)
	return m, errors.Join(errs...)
}

// ErrUnknownName is the error for a module name that does not exist.
var ErrUnknownName = errors.New("unknown name")

func byName[T any](what, name string, known map[string]T) (T, error) {
	v, ok := known[name]
	if !ok {
		return v, fmt.Errorf("%s: %w: %q; known: %v", what, ErrUnknownName, name, namesOf(known))
	}
	return v, nil
}

func namesOf[T any](known map[string]T) []string {
	names := make([]string, 0, len(known))
	for n := range known {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// ProtocolNamed returns the protocol of a name. Its error wraps [ErrUnknownName].
func ProtocolNamed(name string) (Protocol, error) { return byName("protocol", name, protocols) }
