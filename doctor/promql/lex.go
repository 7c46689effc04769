package promql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kind is the kind of a token.
type kind uint8

const (
	end kind = iota
	word
	number
	text
	span
	sign
)

// token is a part of an expression.
type token struct {
	kind kind
	text string
	at   int
}

var lexeme = regexp.MustCompile(`^(?:` +
	`(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')` +
	`|(?P<span>[0-9]+(?:ms|s|m|h|d|w))\b` +
	`|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)` +
	`|(?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)` +
	`|(?P<sign>=~|!~|!=|==|<=|>=|[-+*/(){}\[\],=<>]))`)

// lexemeKinds are the kinds of the groups of lexeme.
var lexemeKinds = map[string]kind{"text": text, "span": span, "number": number, "word": word, "sign": sign}

// maxExpression bounds an expression, in bytes.
const maxExpression = 4096

// lex cuts an expression into tokens; the last is of kind end.
func lex(expr string) ([]token, error) {
	if len(expr) > maxExpression {
		return nil, fmt.Errorf("expression: %d bytes, at most %d may be", len(expr), maxExpression)
	}
	var all []token
	for at := 0; ; {
		at += len(expr[at:]) - len(strings.TrimLeft(expr[at:], " \t\r\n"))
		if at == len(expr) {
			return append(all, token{kind: end, at: at}), nil
		}
		found := lexeme.FindStringSubmatch(expr[at:])
		if found == nil {
			return nil, fmt.Errorf("expression: byte %d, at %.10q, is not understood", at, expr[at:])
		}
		for i, name := range lexeme.SubexpNames() {
			if name != "" && found[i] != "" {
				all = append(all, token{lexemeKinds[name], found[i], at})
			}
		}
		at += len(found[0])
	}
}

// unquote returns the text within quotes.
func unquote(s string) (string, error) {
	if s[0] == '\'' {
		s = `"` + strings.ReplaceAll(strings.ReplaceAll(s[1:len(s)-1], `\'`, `'`), `"`, `\"`) + `"`
	}
	return strconv.Unquote(s)
}
