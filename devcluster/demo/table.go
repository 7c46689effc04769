package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/httpapi"
)

// view holds the content of a drawing.
type view struct {
	entity    string
	limit     int64
	elapsed   time.Duration
	remaining time.Duration
	phase     string         // end of the header
	read      httpapi.Status // last read of the books, of all orgs together; zero before the first
	stats     load.Stats     // with the latencies of the window
	rates     []rates        // per second, region by region
	total     rates

	news            []string // what happened to nodes
	redistributions uint64
	plan            *plan          // of a hierarchy; else nil
	rows            []EntityResult // of the hierarchy's entities, in the order of the plan
}

// rates are requests per second.
type rates struct{ requests, grants float64 }

// keepRates copies the rates and latencies of another view.
func (v *view) keepRates(of *view) {
	v.rates, v.total, v.stats.Latency = of.rates, of.total, of.stats.Latency
	for i := range v.stats.Regions {
		v.stats.Regions[i].Latency = of.stats.Regions[i].Latency
	}
}

// tableWidth is the most characters of a line of the table.
const tableWidth = 80

// table returns the lines of the table, at most [tableWidth] wide, and the news.
func (v *view) table() []string {
	if v.plan != nil {
		return append(v.treeTable(), v.news...)
	}
	bold, plain := "\x1b[1m", "\x1b[0m"
	lines := []string{
		fmt.Sprintf("%ssamya demo%s  %s  limit %s   %s elapsed, %s to go%s", bold, plain,
			shorten(v.entity, 16), number(v.limit), clock(v.elapsed), clock(v.remaining), v.phase),
		fmt.Sprintf("requests %s (%s/s)  granted %s  refused %s  redistributions %s",
			number(v.stats.Total.Requests), decimal(v.total.requests), number(v.stats.Total.Granted),
			number(v.stats.Total.Refused), number(v.redistributions)),
		fmt.Sprintf("acquired %s  available %s  in transit %s%s",
			number(v.read.Acquired), number(v.read.Available), number(v.read.InTransit), v.trouble()),
		"",
	}
	lines = append(lines, v.sites()...)
	lines = append(lines, "")
	shares := v.shares()
	for _, r := range v.stats.Regions {
		lines = append(lines, bar(r.Region, shares[r.Region], v.limit))
	}
	return append(append(lines, "     █ acquired  ░ left, of two fifths of the limit"), v.news...)
}

// shares are the sites' shares by name.
func (v *view) shares() map[string]httpapi.Share {
	shares := make(map[string]httpapi.Share)
	for _, s := range v.read.Shares {
		shares[s.Site] = s
	}
	return shares
}

// sites returns a header and a line for each region.
func (v *view) sites() []string {
	bold, plain := "\x1b[1m", "\x1b[0m"
	lines := []string{
		fmt.Sprintf("%s%-5s%8s%10s%10s%9s%9s%9s%9s%9s%s", bold, "site", "left", "acquired", "grants/s", "refused", "p50 ms", "p99 ms", "redistr", "waiting", plain),
	}
	shares := v.shares()
	for i, r := range v.stats.Regions {
		left, acquired, redistr, waiting := "-", "-", "-", "-"
		if s, ok := shares[r.Region]; ok && s.Known {
			left, acquired = number(s.Left), number(s.Net)
			redistr, waiting = number(s.Redistributions+s.Transfers), number(s.Waiting)
		}
		lines = append(lines, fmt.Sprintf("%-5s%8s%10s%10s%9s%9s%9s%9s%9s", r.Region, left, acquired,
			decimal(v.rates[i].grants), number(r.Counts.Refused),
			latency(r.Latency.P50), latency(r.Latency.P99), redistr, waiting))
	}
	return lines
}

// bar draws a site's share, acquired and left tokens, on a scale that ends at two fifths
// of the limit.
func bar(site string, s httpapi.Share, limit int64) string {
	const cells = tableWidth - 6
	scale := func(tokens int64) int {
		return int(min(max(float64(tokens)/(0.4*float64(limit)), 0), 1)*cells + 0.5)
	}
	acquired := scale(s.Net)
	left := min(scale(s.Net+max(s.Left, 0)), cells) - acquired
	return fmt.Sprintf("%-5s%s%s", site, strings.Repeat("█", acquired), strings.Repeat("░", max(left, 0)))
}

// trouble tells of missing answers, unknown outcomes and failed requests.
func (v *view) trouble() string {
	var b strings.Builder
	if !v.read.Complete && len(v.read.Shares) > 0 {
		b.WriteString("  (not all sites answered)")
	}
	if t := v.stats.Total; t.Unresolved > 0 || t.Failed > 0 || t.Shed > 0 {
		fmt.Fprintf(&b, "  unknown %s  failed %s", number(t.Unresolved), number(t.Failed+t.Shed))
	}
	return b.String()
}

// line is the view as a line of text.
func (v *view) line() string {
	line := fmt.Sprintf("%5s  requests %s (%s/s)  granted %s  refused %s  acquired %s  in transit %s  redistributions %s  p50 %s ms  p99 %s ms%s",
		clock(v.elapsed), number(v.stats.Total.Requests), decimal(v.total.requests), number(v.stats.Total.Granted),
		number(v.stats.Total.Refused), number(v.read.Acquired), number(v.read.InTransit), number(v.redistributions),
		latency(v.stats.Latency.P50), latency(v.stats.Latency.P99), v.trouble())
	if v.plan != nil {
		line += "  " + v.kept() + "  " + v.lacked()
	}
	return line
}

// redistributions counts the redistributions that the cluster decided and the rounds of
// direct transfers. The site with the most redistributions has applied all of them. Each
// site counts its own rounds.
func redistributions(s httpapi.Status) uint64 {
	var most, rounds uint64
	for _, share := range s.Shares {
		most = max(most, share.Redistributions)
		rounds += share.Transfers
	}
	return most + rounds
}

// number formats an integer with a comma between thousands.
func number[T int | int64 | uint64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// decimal formats a number with two decimals below 10, a single decimal below 1000 and
// none from there on.
func decimal(x float64) string {
	switch {
	case x >= 1000:
		return number(int64(x + 0.5))
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// latency formats a latency in milliseconds; "-" if no request was answered.
func latency(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return decimal(milliseconds(d))
}

// clock formats a duration as minutes and seconds.
func clock(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// shorten cuts s to at most n characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-1] + "…"
}
