package explore

// rule is a rule that tests leave out.
type rule string

// The rules of members that change which package explore has copies of.
const (
	// emptyIsClosed: a site with an open bequest is not empty.
	emptyIsClosed rule = "a leaver is empty once its last bequest is closed"
	// netIsHandedOver: a site with nothing left, but tokens out, is not empty.
	netIsHandedOver rule = "a leaver is empty once it has no tokens out"
	// hearsNoneThatIsOut: a site hears no site that is out.
	hearsNoneThatIsOut rule = "a site that is out is heard no more"
	// othersAreClear: no instance of a leaver is open elsewhere.
	othersAreClear rule = "a leaver is empty once the others have ended all instances with it"
	// goneIsOut: who has ended an instance waits for no site that is gone. Its own record may
	// have come back by a crash.
	goneIsOut rule = "nobody waits for a site that is gone"
	// offersOfLeavers: who knows of a drain builds no value with an offer of the leaver.
	offersOfLeavers rule = "an offer of a leaver is in no value"
	// leasesAreFrozen: a lease in an open bequest is not ended by the leaver.
	leasesAreFrozen rule = "a lease in an open bequest is frozen"
	// noMoreThanTheOffer and noMoreThanTheGrant: a site that cannot know the outcome gets
	// the lower of both.
	noMoreThanTheOffer rule = "who cannot know the outcome gets no more than it offered"
	noMoreThanTheGrant rule = "who cannot know the outcome gets no more than its grant"
	// lossesAreDurable: a site never forgets a loss.
	lossesAreDurable rule = "a loss is known for ever"
)
