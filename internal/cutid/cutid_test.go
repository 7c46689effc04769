package cutid_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/testfuzz"
)

var some = cutid.Cut{Entity: "acme/vm", Generation: 7, Version: 3, Counted: 1200, Returning: 40, WrittenOff: -30, Leased: 12}

// TestWord: a word is read back, and only for its entity.
func TestWord(t *testing.T) {
	word := some.String()
	if len(word) > 40 {
		t.Errorf("the word is %q", word)
	}
	if got, err := cutid.Parse("cut", "acme/vm", word); err != nil || got != some || got.InUse() != 1170 {
		t.Errorf("%q is %+v, %v", word, got, err)
	}
	for _, c := range []struct{ entity, word string }{
		{"acme/vn", word},
		{"acme/vm", ""},
		{"acme/vm", "cut1-"},
		{"acme/vm", "cut2" + word[4:]},
		{"acme/vm", word + "0"},
		{"acme/vm", word[5:]},
		{"acme/vm", " " + word},
		{"acme/vm", (&cutid.Cut{Entity: "acme/vm", Generation: 0, Version: 1}).String()},
		{"acme/vm", (&cutid.Cut{Entity: "acme/vm", Generation: 1, Version: 0}).String()},
		{"acme/vm", (&cutid.Cut{Entity: "acme/vm", Generation: 1, Version: 1, Returning: -1}).String()},
		{"acme/vm", (&cutid.Cut{Entity: "acme/vm", Generation: 1, Version: 1, Leased: -1}).String()},
		{"acme/vm", (&cutid.Cut{Entity: "acme/vm", Generation: 1, Version: 1, Counted: name.MaxTokens + 1}).String()},
		{"acme/vm", (&cutid.Cut{Entity: "acme/vm", Generation: 1, Version: 1, WrittenOff: -name.MaxTokens - 1}).String()},
	} {
		got, err := cutid.Parse("cut", c.entity, c.word)
		if e, ok := errors.AsType[*name.Error](err); !ok || e.Field != "cut" {
			t.Errorf("%q for %q is %+v, %v", c.word, c.entity, got, err)
		}
	}
}

// TestTypo: a word with another letter, or with two letters exchanged, is refused.
func TestTypo(t *testing.T) {
	word := some.String()
	for i := range word {
		for _, letter := range "0123456789abcdefghijklmnopqrstuvwxyz-" {
			typo := word[:i] + string(letter) + word[i+1:]
			if got, err := cutid.Parse("cut", "acme/vm", typo); err == nil && typo != word {
				t.Errorf("%q is taken as %+v", typo, got)
			}
		}
		if i > 0 && word[i] != word[i-1] {
			typo := word[:i-1] + word[i:i+1] + word[i-1:i] + word[i+1:]
			if got, err := cutid.Parse("cut", "acme/vm", typo); err == nil {
				t.Errorf("%q is taken as %+v", typo, got)
			}
		}
	}
}

// TestEveryCut: every cut within the bounds is read back.
func TestEveryCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(-name.MaxTokens, name.MaxTokens)
		c := cutid.Cut{
			Entity: rapid.StringMatching(`[a-z/]{1,20}`).Draw(t, "entity"), Generation: rapid.Uint64Min(1).Draw(t, "generation"),
			Version: rapid.Uint64Min(1).Draw(t, "version"), Counted: tokens.Draw(t, "counted"), WrittenOff: tokens.Draw(t, "written off"),
			Returning: rapid.Int64Range(0, name.MaxTokens).Draw(t, "returning"), Leased: rapid.Int64Range(0, name.MaxTokens).Draw(t, "leased"),
		}
		if got, err := cutid.Parse("cut", c.Entity, c.String()); err != nil || got != c {
			t.Fatalf("%+v becomes %+v, %v", c, got, err)
		}
	})
}

// FuzzParse: a word that is read is the word that its cut is written as.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(some.Entity, some.String())
	f.Add("e", "cut1-0")
	f.Fuzz(func(t *testing.T, entity, word string) {
		if c, err := cutid.Parse("cut", entity, word); err == nil && (c.String() != word || c.Generation == 0 || c.Version == 0) {
			t.Errorf("%q is %+v, which is %q", word, c, c.String())
		}
	})
}
