package metis

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// eof is the result of peek behind the last byte.
const eof = -1

// lexer reads numbers from lines, which may be of any length.
type lexer struct {
	r io.Reader
	// buf[at:end] was read and not yet passed.
	buf     []byte
	at, end int
	// line is the number of the present line, from 1.
	line int
	// err is the error of the reader, except the end of the file. done says that no more
	// bytes come.
	err  error
	done bool
}

func newLexer(r io.Reader) *lexer {
	return &lexer{r: r, buf: make([]byte, 1<<16), line: 1}
}

// peek returns the next byte, or eof.
func (l *lexer) peek() int {
	if l.at < l.end || l.fill() {
		return int(l.buf[l.at])
	}
	return eof
}

// fill reads on once all bytes were passed, and reports whether there are more.
func (l *lexer) fill() bool {
	for !l.done {
		n, err := l.r.Read(l.buf)
		l.at, l.end = 0, n
		if err != nil {
			l.done = true
			if !errors.Is(err, io.EOF) {
				l.err = fmt.Errorf("read line %d: %w", l.line, err)
			}
		}
		if n > 0 {
			return true
		}
	}
	return false
}

// atEnd reports whether nothing follows.
func (l *lexer) atEnd() bool { return l.peek() == eof }

// number reads the next number of the line; ok is false if there is none.
func (l *lexer) number() (n int64, ok bool, err error) {
	c := l.peek()
	for ; isBlank(c); c = l.peek() {
		l.at++
	}
	if c == '\n' || c == eof {
		return 0, false, l.err
	}
	negative := c == '-'
	if negative {
		l.at++
		c = l.peek()
	}
	for ; c >= '0' && c <= '9'; c = l.peek() {
		digit := int64(c - '0')
		if n > (math.MaxInt64-digit)/10 {
			return 0, false, l.fail("a number above %d", int64(math.MaxInt64))
		}
		n = 10*n + digit
		ok = true
		l.at++
	}
	switch {
	case l.err != nil:
		return 0, false, l.err
	case !ok && (c == eof || c == '\n' || isBlank(c)):
		return 0, false, l.fail("a minus without a number")
	case !ok || c != eof && c != '\n' && !isBlank(c):
		return 0, false, l.fail("%q in a number", rune(c))
	}
	if negative {
		n = -n
	}
	return n, true, nil
}

func isBlank(c int) bool { return c == ' ' || c == '\t' || c == '\r' }

// endLine goes to the beginning of the next line. It fails if the present line holds
// another number.
func (l *lexer) endLine() error {
	_, more, err := l.number()
	switch {
	case err != nil:
		return err
	case more:
		return l.fail("more numbers than belong there")
	}
	l.skipLine()
	return nil
}

// skipLine goes to the beginning of the next line.
func (l *lexer) skipLine() {
	for c := l.peek(); c != eof; c = l.peek() {
		l.at++
		if c == '\n' {
			l.line++
			return
		}
	}
}

// skipComments goes to the first line from here that does not begin with %.
func (l *lexer) skipComments() {
	for l.peek() == '%' {
		l.skipLine()
	}
}

// fail returns errFormat at the present line, or the error of the reader.
func (l *lexer) fail(format string, args ...any) error {
	if l.err != nil {
		return l.err
	}
	return fmt.Errorf("%w: line %d: %s", errFormat, l.line, fmt.Sprintf(format, args...))
}
