package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// plainEvery is the interval between two lines if no table is drawn.
const plainEvery = 5 * time.Second

// screen shows views: as a table redrawn in place on a terminal, else as a line every
// plainEvery.
type screen struct {
	w        io.Writer
	terminal func() (width, height int, ok bool)
	drawn    int // lines of the table on the terminal; zero: none
	hidden   bool
	last     time.Duration // elapsed time of the last plain line
	told     int           // news told as lines
}

// show shows the view.
func (s *screen) show(v *view) error {
	lines := v.table()
	if s.terminal != nil {
		if width, height, ok := s.terminal(); ok && width >= 40 && height > len(lines) {
			return s.draw(lines, width)
		}
	}
	for ; s.told < len(v.news); s.told++ {
		if _, err := fmt.Fprintln(s.w, v.news[s.told]); err != nil {
			return err
		}
	}
	if v.elapsed-s.last < plainEvery-plainEvery/10 {
		return nil
	}
	s.last = v.elapsed
	_, err := fmt.Fprintln(s.w, v.line())
	return err
}

// draw replaces the table in a single write. It overwrites every line before it clears
// the rest of the line, so that nothing flickers.
func (s *screen) draw(lines []string, width int) error {
	var b strings.Builder
	if !s.hidden {
		b.WriteString("\x1b[?25l")
		s.hidden = true
	}
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	for _, line := range lines {
		b.WriteString(clip(line, width))
		b.WriteString("\x1b[K\n")
	}
	s.drawn = len(lines)
	_, err := io.WriteString(s.w, b.String())
	return err
}

// close gives the terminal back.
func (s *screen) close() error {
	if !s.hidden {
		return nil
	}
	s.hidden = false
	_, err := io.WriteString(s.w, "\x1b[?25h")
	return err
}

// clip cuts a line to the width so that it never wraps. Escape sequences have no width.
func clip(line string, width int) string {
	seen := 0
	escape := false
	for i, c := range line {
		switch {
		case c == '\x1b':
			escape = true
		case escape:
			escape = c != 'm'
		case seen == width:
			return line[:i] + "\x1b[0m"
		default:
			seen++
		}
	}
	return line
}
