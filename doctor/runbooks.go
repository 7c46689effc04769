package doctor

import (
	"regexp"
	"strings"

	"github.com/samya-db/samya/docs"
)

// runbooksURL is the address of the page of the runbooks.
const runbooksURL = "https://github.com/samya-db/samya/blob/main/docs/runbooks.md"

// runbook is a section of the page.
type runbook struct{ means, do string }

// runbooks are the sections by name.
var runbooks = readRunbooks(docs.Runbooks)

// link is a link in Markdown. The link text stays.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain takes the marks of Markdown out of a paragraph.
func plain(paragraph string) string {
	text := link.ReplaceAllString(strings.Join(strings.Fields(paragraph), " "), "$1")
	return strings.ReplaceAll(strings.ReplaceAll(text, "`", ""), "*", "")
}

// readRunbooks reads the page: sections with a paragraph that begins with "It means" and
// another that begins with "Do:".
func readRunbooks(page string) map[string]runbook {
	all := make(map[string]runbook)
	for _, section := range strings.Split("\n"+page, "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		var r runbook
		for p := range strings.SplitSeq(body, "\n\n") {
			switch p = plain(p); {
			case strings.HasPrefix(p, "It means "):
				r.means = capital(strings.TrimPrefix(p, "It means "))
			case strings.HasPrefix(p, "Do: "):
				r.do = capital(strings.TrimPrefix(p, "Do: "))
			}
		}
		all[strings.TrimSpace(name)] = r
	}
	return all
}

// capital begins a text with a capital letter.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// linkTo returns the address of a runbook.
func linkTo(id string) string { return runbooksURL + "#" + strings.ToLower(id) }

// found returns a finding that needs no rule.
func found(id, summary, where string, labels map[string]string) Finding {
	b := runbooks[id]
	return Finding{
		ID: id, Severity: known[id], Labels: labels, Summary: summary, Means: b.means, Do: b.do, Runbook: linkTo(id), Where: where,
	}
}
