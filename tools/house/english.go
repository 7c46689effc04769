package main

import (
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Budgets of English. Pronouns in place of a noun make a sentence hard to read: six
// well-read projects have 1.4 to 3.9 pronouns in 1,000 words of comments.
const (
	maxPronouns = 8   // of 1,000 words
	leastWords  = 500 // shorter texts count as this long
)

var (
	word     = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	pronoun  = regexp.MustCompile(`(?i)\b(those|that of|of which|whose|what|one)\b`)
	quoted   = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"")
	fenced   = regexp.MustCompile("(?s)```.*?```")
	indented = regexp.MustCompile(`(?m)^(    |\t).*$`)
)

// english counts the words of a text, and the pronouns among them.
type english struct{ words, pronouns int }

func (e *english) add(text string) {
	text = quoted.ReplaceAllString(text, "x")
	e.words += len(word.FindAllString(text, -1))
	e.pronouns += len(pronoun.FindAllString(text, -1))
}

// of1000 is the number of pronouns in 1,000 words, rounded up.
func (e *english) of1000() int {
	words := max(e.words, leastWords)
	return (e.pronouns*1000 + words - 1) / words
}

// comments counts the pronouns in the comments of each package.
func (m *module) comments() Measure {
	var all []ranked
	for _, p := range m.sorted() {
		var e english
		m.written(p, func(f *ast.File, _ string) {
			for _, group := range f.Comments {
				// Text leaves directives out; code in a comment is indented.
				e.add(indented.ReplaceAllString(group.Text(), ""))
			}
		})
		all = append(all, ranked{m.short(p.PkgPath), e.of1000()})
	}
	return worst("pronouns in 1,000 words of comments, worst package", maxPronouns, all)
}

// leftOut are folders without pages of documentation.
var leftOut = []string{".git", "bin", "testdata", "node_modules"}

// papers holds the pages about the papers' experiments.
const papers = "docs/papers/"

// pages counts the pronouns in each page of documentation, and the words of all pages
// outside of papers. It leaves out the changelog, which is history.
func (m *module) pages() (pronouns, words Measure, err error) {
	root := filepath.Dir(m.goMod)
	found := make(map[string]*english)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(leftOut, d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md" || d.Name() == "CHANGELOG.md":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		e := new(english)
		e.add(indented.ReplaceAllString(fenced.ReplaceAllString(string(b), ""), ""))
		found[filepath.ToSlash(name)] = e
		return nil
	})
	if err != nil {
		return pronouns, words, fmt.Errorf("read the documentation: %w", err)
	}
	words = Measure{Name: "words of documentation, without the papers' experiments", Bound: noBound}
	var all []ranked
	for _, name := range slices.Sorted(maps.Keys(found)) {
		e := found[name]
		if !strings.HasPrefix(name, papers) {
			words.Now += e.words
		}
		all = append(all, ranked{name, e.of1000()})
	}
	return worst("pronouns in 1,000 words of documentation, worst page", maxPronouns, all), words, nil
}
