package samya

// The paper's numbers in its text and tables. Numbers in figures alone are left
// out.
var (
	// Table 6, in milliseconds.
	paperTable6 = []paperLatency{
		{majority, 1.40, 10.2, 65.1},
		{star, 2.9, 37.3, 97.3},
		{escrowHalf, 3.5, 59.6, 213.9},
		{oneRound, 126.8, 172.7, 276.3},
	}
	// Section 5.3: redistributions in the hour, and ratios of throughput: samya over
	// MultiPaxSys (16 to 18) and over Demarcation/Escrow, and Demarcation/Escrow
	// over MultiPaxSys.
	paperRedistributions     = 208.0
	paperStarRedistributions = 792.0
	paperOverMultiPaxSys     = 17.0
	paperOverEscrow          = 1.3
	paperEscrowOverPaxos     = 11.0
	// Section 5.5: by how much samya is below No Constraint, 3.5 to 4 %, and its
	// ratio to No Redistribution.
	paperBelowNoConstraint   = 3.75
	paperOverNoRedistributes = 1.14
	// Section 5.6: with forecasts over without.
	paperForecasts = 1.4
	// Section 5.7: bound of the mean latency with 5 to 20 sites, in milliseconds.
	paperMeanLatency = 2.0
	// Section 5.8: the share of reads above which MultiPaxSys is ahead, in percent.
	paperCrossover = 65.0
	// Section 5.9: redistributions with limits of 600 and 16,000. paperLimits is the
	// growth of throughput from a limit at the mean demand to a limit at the
	// greatest demand.
	paperAt600, paperAt16000 = 1960.0, 0.0
	paperLimits              = 5.0
	// Section 5.10: the fall of throughput with requests 60 times rarer, in percent,
	// and samya's ratio to MultiPaxSys there.
	paperRarer         = 33.0
	paperOverWhereRare = 1.43
)

// paperLatency is a column of Table 6.
type paperLatency struct {
	system        string
	p90, p95, p99 float64
}
