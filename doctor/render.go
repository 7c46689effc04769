package doctor

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Widths of the text of a report, in characters.
const (
	leastWidth = 40
	labelWidth = 8
)

// Write writes a report as text: the answer in the first line, then the findings, the
// worst first. Lines are at most width characters long, 40 at least, where words allow.
func (r *Report) Write(w io.Writer, width int) error {
	width = max(width, leastWidth)
	var b bytes.Buffer
	fmt.Fprintln(&b, r.headline())
	for _, f := range r.Findings {
		b.WriteString("\n")
		para(&b, strings.ToUpper(string(f.Severity))+" "+f.ID, f.Summary, width, 0)
		for _, part := range [][2]string{
			{"about", about(f.Labels)}, {"seen", f.seen()}, {"where", f.Where}, {"means", f.Means}, {"do", f.Do}, {"see", f.Runbook},
		} {
			if part[1] != "" {
				para(&b, fmt.Sprintf("  %-*s", labelWidth, part[0]), part[1], width, labelWidth+2)
			}
		}
	}
	for _, note := range r.notes() {
		b.WriteString("\n")
		para(&b, "", note, width, 0)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}

// headline is the answer in a line.
func (r *Report) headline() string {
	text := "healthy: nothing is wrong"
	if n := len(r.Findings) + r.LeftOff; n > 0 {
		by := r.count()
		var parts []string
		for _, s := range severities {
			switch {
			case by[s] == 1:
				parts = append(parts, "1 "+string(s))
			case by[s] > 0 && s == Critical:
				parts = append(parts, strconv.Itoa(by[s])+" critical")
			case by[s] > 0:
				parts = append(parts, strconv.Itoa(by[s])+" "+string(s)+"s")
			}
		}
		text = plural(n, "finding") + ": " + strings.Join(parts, ", ")
		if r.LeftOff > 0 {
			text += fmt.Sprintf("; %d more of the same are left off", r.LeftOff)
		}
	}
	var of []string
	if r.Data != nil {
		of = append(of, "data in "+r.Data.Dir)
	}
	if r.Cluster != "" && r.Data == nil {
		of = append(of, "cluster "+r.Cluster)
	}
	if r.Looks > 0 {
		of = append(of, plural(len(r.Processes), "process"), "looked for "+span(time.Duration(r.LookedSeconds*float64(time.Second))))
	}
	return text + " (" + strings.Join(of, ", ") + ")"
}

// notes are facts besides the findings.
func (r *Report) notes() (notes []string) {
	if d := r.Data; d != nil {
		notes = append(notes, strings.Join(d.lines(), " "))
	}
	short, most := 0, 0.
	var blind []string
	for _, j := range r.Rules {
		switch {
		case !j.Judged:
			blind = append(blind, j.ID)
		case j.JudgedSeconds < j.NeedsSeconds:
			short, most = short+1, max(most, j.NeedsSeconds)
		}
	}
	if short > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d rules look back further, up to %s, and were judged by %s: a state that has passed is not seen. --watch-for %s judges all in full.",
			short, len(r.Rules), span(time.Duration(most)*time.Second), span(time.Duration(r.LookedSeconds*float64(time.Second))), span(time.Duration(most)*time.Second)))
	}
	if len(blind) > 0 {
		notes = append(notes, "Not judged, as no process tells what they are about: "+strings.Join(blind, ", ")+".")
	}
	return notes
}

// lines tell of a data directory.
func (d *Data) lines() (lines []string) {
	if d.Site != "" {
		text := fmt.Sprintf("Data of site %s of cluster %s, format %d", d.Site, d.Cluster, d.Format)
		if d.Incarnation != "" {
			text += ", incarnation " + d.Incarnation
		}
		if len(d.Members) > 0 {
			text += "; members " + strings.Join(d.Members, ", ")
		}
		lines = append(lines, text+".")
	}
	if d.Commit > 0 || d.Entities > 0 {
		lines = append(lines, fmt.Sprintf("A start would find commit %d: %s, %s and %s.", d.Commit,
			plural(d.Entities, "entity"), plural(d.Leases, "lease"), plural(d.Requests, "request")))
	}
	commits, bytes := uint64(0), int64(0)
	for _, f := range d.Log {
		if bytes += f.Bytes; f.Last > 0 {
			commits += f.Last - f.First + 1
		}
	}
	text := fmt.Sprintf("site.db has %s, the log %s in %s with %s", size(d.BaseBytes), size(bytes), plural(len(d.Log), "file"), plural(int(commits), "commit")) //nolint:gosec // far below
	if d.FreeBytes != nil {
		text += fmt.Sprintf("; the disk has %s of free space", size(int64(min(*d.FreeBytes, 1<<62)))) //nolint:gosec // bounded
	}
	return append(lines, text+".")
}

// size formats a number of bytes.
func size(n int64) string {
	if n == 0 {
		return "0 B"
	}
	return prefixed(float64(n), 1024, " ", " Ki", " Mi", " Gi", " Ti") + "B"
}

// plural formats a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	switch {
	case strings.HasSuffix(thing, "y"):
		thing = strings.TrimSuffix(thing, "y") + "ie"
	case strings.HasSuffix(thing, "ss"):
		thing += "e"
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// about lists labels.
func about(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if labels[name] != "" {
			parts = append(parts, name+" "+labels[name])
		}
	}
	return strings.Join(parts, ", ")
}

// seen tells the number of a finding, and the bound.
func (f *Finding) seen() string {
	if f.Value == nil {
		return ""
	}
	text := strconv.FormatFloat(*f.Value, 'g', 6, 64)
	if f.Bound != "" {
		text += "; the rule is " + f.Bound
	}
	return text
}

// para writes a paragraph behind a head, with later lines indented.
func para(b *bytes.Buffer, head, text string, width, indent int) {
	line, at := strings.TrimRight(head, " "), utf8.RuneCountInString(strings.TrimRight(head, " "))
	if head != "" && indent > 0 {
		line, at = head, utf8.RuneCountInString(head)
	}
	fresh := head == "" || indent > 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case fresh:
		case at+1+n > width:
			b.WriteString(line + "\n")
			line, at = strings.Repeat(" ", max(indent, 2)), max(indent, 2)
			if head == "" {
				line, at = "", 0
			}
		default:
			line, at = line+" ", at+1
		}
		line, at, fresh = line+word, at+n, false
	}
	b.WriteString(line + "\n")
}
