package site

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
)

// TestSitesThatKeepTheVersion: where a site has an older build, the error asks for another
// build and not for another try, whatever the other sites lack.
func TestSitesThatKeepTheVersion(t *testing.T) {
	old := answer.UnreadySite{Site: "as", Speaks: versions.Of(1)}
	away := answer.UnreadySite{Site: "us", Speaks: versions.Of(2)}
	silent := answer.UnreadySite{Site: "eu"}
	const stays, older = "the cluster stays at version 1: ", "site as has a build that speaks version 1 alone"
	for _, c := range []struct {
		sites []answer.UnreadySite
		want  apierr.Reason
		text  string
	}{
		{[]answer.UnreadySite{old}, apierr.VersionMismatch, older},
		{[]answer.UnreadySite{away}, apierr.SiteUnavailable, "site us is not connected"},
		{[]answer.UnreadySite{silent}, apierr.SiteUnavailable, "site eu has not told which versions its build speaks"},
		{[]answer.UnreadySite{old, away}, apierr.VersionMismatch, older + "; site us is not connected"},
		{[]answer.UnreadySite{silent, old}, apierr.VersionMismatch, "site eu has not told which versions its build speaks; " + older},
	} {
		err := unready(c.sites, 1, 2)
		var told *apierr.Error
		if !errors.As(err, &told) || told.Reason != c.want || told.Message != stays+c.text {
			t.Errorf("%v: %v, want %s", c.sites, err, c.want)
		}
	}
}
