package predict

// autoSeason counts its bins from start.
type autoSeason struct {
	start, length   int
	day, hour, week profile
	clock           autoClock
	reg             *fading
}

func newAutoSeason(day, start int) *autoSeason {
	return &autoSeason{
		start: start, length: day,
		day: newProfile(day, 288, seasonWeight), hour: newProfile(day, 24, seasonWeight),
		week: newProfile(7*day, 336, weekWeight), reg: newFading(seasonTerms),
	}
}

// row fills in the features of the season's bin.
func (s *autoSeason) row(row *[mostTerms + 1]float64, lags *tokens, bin int, slow float64) {
	copy(row[:4], lags[:4])
	row[4], row[5] = s.day.at(bin), s.day.at(bin+s.length-1)
	row[6], row[7] = s.week.at(bin), s.week.at(bin+7*s.length-1)
	row[8], row[9] = s.hour.at(bin), s.hour.at(bin+max(1, s.length/24))
	row[10], row[11] = s.week.at(bin+1), slow
}

// ready reports whether the season has seen so many days.
func (s *autoSeason) ready(bin, days int) bool { return s != nil && bin-s.start >= days*s.length }
