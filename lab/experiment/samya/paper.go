package samya

// The paper's numbers, as its text and tables give them. What its figures show
// alone is not among them.
var (
	// Table 6, in milliseconds.
	paperTable6 = []paperLatency{
		{majority, 1.40, 10.2, 65.1},
		{star, 2.9, 37.3, 97.3},
		{escrowHalf, 3.5, 59.6, 213.9},
		{oneRound, 126.8, 172.7, 276.3},
	}
	// Section 5.3: redistributions in the hour, and throughput of samya over that of
	// MultiPaxSys (16 to 18) and of Demarcation/Escrow, and of that over MultiPaxSys.
	paperRedistributions     = 208.0
	paperStarRedistributions = 792.0
	paperOverMultiPaxSys     = 17.0
	paperOverEscrow          = 1.3
	paperEscrowOverPaxos     = 11.0
	// Section 5.5: below No Constraint by 3.5 to 4 %, and over No Redistribution.
	paperBelowNoConstraint   = 3.75
	paperOverNoRedistributes = 1.14
	// Section 5.6: with forecasts over without.
	paperForecasts = 1.4
	// Section 5.7: mean latency below this with 5 to 20 sites, in milliseconds.
	paperMeanLatency = 2.0
	// Section 5.8: the share of reads beyond which MultiPaxSys is ahead, in percent.
	paperCrossover = 65.0
	// Section 5.9: redistributions with limits of 600 and 16,000, and by how much
	// throughput grows from the limit of the mean demand to that of the greatest.
	paperAt600, paperAt16000 = 1960.0, 0.0
	paperLimits              = 5.0
	// Section 5.10: what throughput falls by where requests are 60 times rarer, in
	// percent, and samya's over MultiPaxSys's there.
	paperRarer         = 33.0
	paperOverWhereRare = 1.43
)

// paperLatency is a column of Table 6.
type paperLatency struct {
	system        string
	p90, p95, p99 float64
}
