package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samya-db/samya/internal/inspection"
)

const (
	// loadCells is the length of the bar of the partition with most load, in characters.
	loadCells = 24
	// splitCells is the most partitions in a line of a split entity.
	splitCells = 8
)

// printInspection prints the work of the sites' partitions.
func printInspection(w io.Writer, s inspection.Status) {
	for i, site := range s.Sites {
		if i > 0 {
			row(w)
		}
		for _, line := range siteLines(site) {
			row(w, line)
		}
	}
	if !s.Complete {
		row(w)
		row(w, "Not every site answered.")
	}
}

// siteLines returns the lines about a site.
func siteLines(s inspection.Site) []string {
	switch {
	case !s.Known:
		return []string{"site " + s.Site + " did not answer: " + s.Problem}
	case len(s.Partitions) == 0:
		return []string{"site " + s.Site + " has no partitions: it serves all entities alone"}
	}
	over := time.Duration(s.UpMS) * time.Millisecond
	lines := []string{fmt.Sprintf("site %s  %s over %s", s.Site, counted(uint64(len(s.Partitions)), "partition"), span(over)), ""}
	lines = append(lines, partitionLines(s, over)...)
	lines = append(lines, "")
	r := s.Repartitioning
	on, failed, moved := "on", "", "entities"
	if !r.On {
		on = "off"
	}
	if r.Failed > 0 {
		failed = fmt.Sprintf(", %s failed", grouped(r.Failed))
	}
	if r.Moved == 1 {
		moved = "entity"
	}
	cross := "none"
	if s.Cross > 0 {
		cross = fmt.Sprintf("%s of what partitions served (%s)", percent(s.Cross, s.Served), grouped(s.Cross))
	}
	facts := [][2]string{
		{"Requests", fmt.Sprintf("%s by partitions; %s served alone (%s)",
			grouped(s.Served), grouped(s.Passed), percent(s.Passed, s.Served+s.Passed))},
		{"Cross-partition", cross},
		{"Imbalance", fmt.Sprintf("%.2f: load of the partition with most over the mean", s.Imbalance)},
		{"Repartitioning", fmt.Sprintf("%s: %s computed, %s applied, %s skipped%s; %s %s moved",
			on, counted(r.Computed, "map"), grouped(r.Applied), grouped(r.Skipped), failed, grouped(r.Moved), moved)},
		{"Pause", pause(r.Pause)},
		{"Last cut", lastCut(r)},
		{"Tracking", share(r.Tracking) + " of requests"},
		{"Split entities", strconv.Itoa(len(s.Split))},
	}
	for _, f := range facts {
		lines = append(lines, fmt.Sprintf("%-15s  %s", f[0], f[1]))
	}
	if len(s.Split) > 0 {
		lines = append(lines, "")
		lines = append(lines, splitLines(s.Split)...)
	}
	return lines
}

// partitionLines returns the table of the partitions.
func partitionLines(s inspection.Site, over time.Duration) []string {
	var most, all uint64
	for _, p := range s.Partitions {
		most, all = max(most, p.Operations), all+p.Operations
	}
	table := [][]string{{"PARTITION", "ENTITIES", "QUEUED", "OPERATIONS", "/S", "SHARE", "LOAD"}}
	for i, p := range s.Partitions {
		rate := 0.
		if over > 0 {
			rate = float64(p.Operations) / over.Seconds()
		}
		table = append(table, []string{
			strconv.Itoa(i), grouped(p.Entities), grouped(p.Queued), grouped(p.Operations),
			grouped(uint64(rate + .5)), percent(p.Operations, all), load(p.Operations, most),
		})
	}
	return aligned(table, 6)
}

// splitLines returns the table of split entities. A line holds at most splitCells
// partitions.
func splitLines(split []inspection.Split) []string {
	widest, several := 0, false
	for _, e := range split {
		several = several || len(e.Left) > splitCells
		for _, left := range e.Left {
			widest = max(widest, len(groupedSigned(left)))
		}
	}
	table := [][]string{{"SPLIT ENTITY", "OPERATIONS", "LEFT", "LEFT IN EACH PARTITION"}}
	for _, e := range split {
		all := int64(0)
		for _, left := range e.Left {
			all += left
		}
		head := []string{e.Name, grouped(e.Operations), groupedSigned(all)}
		from := 0
		for part := range slices.Chunk(e.Left, splitCells) {
			var cells []string
			for _, left := range part {
				cells = append(cells, fmt.Sprintf("%*s", widest, groupedSigned(left)))
			}
			text := strings.Join(cells, "  ")
			if several {
				text = fmt.Sprintf("%2d…%-2d  %s", from, from+len(part)-1, text)
			}
			table = append(table, append(head, text))
			head, from = []string{"", "", ""}, from+len(part)
		}
		if len(e.Left) == 0 {
			table = append(table, append(head, "-"))
		}
	}
	return aligned(table, 0, 3)
}

// aligned lays out a table, with its head in the first row. Columns in left are aligned
// to the left, others to the right.
func aligned(table [][]string, left ...int) []string {
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	lines := make([]string, 0, len(table))
	for _, cells := range table {
		var b strings.Builder
		for i, c := range cells {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if slices.Contains(left, i) {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// load returns the bar of a partition with n operations, in proportion to the most
// operations of a partition.
func load(n, most uint64) string {
	if most == 0 {
		return ""
	}
	full := int((float64(n)/float64(most))*loadCells + .5)
	if n > 0 {
		full = max(full, 1)
	}
	return strings.Repeat("█", full) + strings.Repeat("░", loadCells-full)
}

func pause(p inspection.Pause) string {
	if p.Count == 0 {
		return "none so far"
	}
	return fmt.Sprintf("median %s, p99 %s, longest %s; %s since the start",
		micros(p.P50), micros(p.P99), micros(p.Max), counted(p.Count, "pause"))
}

func lastCut(r inspection.Repartitioning) string {
	if r.LastCutMS == 0 {
		return "none so far"
	}
	return fmt.Sprintf("%s of what is used together lies apart; took %s", share(r.LastCut), micros(r.LastCutMS*1e3))
}

// micros formats microseconds: in µs below 1 ms, in ms with three digits below 1 s, else
// in s with a single decimal.
func micros(us float64) string {
	switch {
	case us < 1e3:
		return strconv.FormatFloat(us, 'f', 0, 64) + " µs"
	case us < 1e6:
		return strconv.FormatFloat(us/1e3, 'g', 3, 64) + " ms"
	}
	return strconv.FormatFloat(us/1e6, 'f', 1, 64) + " s"
}

// span formats the duration of a look, in tenths of a second below a minute and in
// seconds from there on.
func span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func percent(n, of uint64) string {
	if of == 0 {
		return "-"
	}
	return share(float64(n) / float64(of))
}

func share(v float64) string { return strconv.FormatFloat(v*100, 'f', 1, 64) + " %" }

// counted formats a number of things.
func counted(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

// grouped formats a number with commas between thousands.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func groupedSigned(n int64) string {
	if n < 0 {
		return "-" + grouped(-uint64(n))
	}
	return grouped(uint64(n))
}
