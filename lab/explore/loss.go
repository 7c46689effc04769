package explore

import (
	"fmt"
	"math/bits"

	"github.com/samya-db/samya/avantan"
)

// A site may be written off, whatever it has done: another site decides so, and tells the
// third. The lost site never learns of it, and goes on alone. So it is lost before, between
// and after all of its steps, and may be alive or dead. The others learn of the loss at
// times of their own, durably. From then on they hear the lost site no more, and tell it
// nothing.
//
// In a cluster the catalogue decides the loss, by a majority of the sites that are left,
// and each site learns of it from the catalogue. With a single loss this is the same: who
// decides first knows of it first.

// losses are the sites that a site knows to be written off, as bits.
type losses uint8

func (l losses) has(site int) bool { return l>>site&1 == 1 }

// site is the site that was lost, or false if none was.
func (l losses) site() (int, bool) { return bits.TrailingZeros8(uint8(l)), l != 0 }

// writtenOff is the news of a loss.
type writtenOff struct{ site int }

// lossActs are the decisions that another site is lost, for a site that knows of no loss.
func lossActs(b *Bounds, site int, lost losses) []Act {
	var acts []Act
	for other := range Sites {
		if b.Losses > 0 && lost == 0 && other != site {
			acts = append(acts, Act{lossAct(other), Loss})
		}
	}
	return acts
}

func lossAct(site int) string { return fmt.Sprintf("decides that %s is lost", siteNames[site]) }

// lossNamed returns the site that an act writes off.
func lossNamed(act string) (int, bool) {
	for site := range siteNames {
		if act == lossAct(site) {
			return site, true
		}
	}
	return 0, false
}

// lossNews are the messages of a site that decides a loss.
func lossNews(from, lost int) []Packet {
	to := Sites - from - lost
	return []Packet{{
		From: from, To: to, Key: fmt.Sprintf("lost %d %d", from, lost), Body: &writtenOff{lost},
		Text: fmt.Sprintf("%s is lost", siteNames[lost]),
	}}
}

// siteNames are the names of all sites, in order.
var siteNames = [Sites]avantan.SiteID{"a", "b", "c"}
