package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Nearly all bodies of acquires and releases are flat objects of a few short fields.
// plainBody reads these at a fraction of the cost of decodeJSON, and their answers are
// written without reflection. Any unusual body, above all any malformed body, is left to
// decodeJSON, which finds the error.

// plainBody reads a flat JSON object of strings without escapes and of whole
// numbers.
type plainBody struct{ rest []byte }

func (p *plainBody) space() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\t' || p.rest[0] == '\r' || p.rest[0] == '\n') {
		p.rest = p.rest[1:]
	}
}

// take reads the character c, with white space around it.
func (p *plainBody) take(c byte) bool {
	p.space()
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	p.space()
	return true
}

// text reads a string of printable ASCII without escapes.
func (p *plainBody) text() ([]byte, bool) {
	if len(p.rest) == 0 || p.rest[0] != '"' {
		return nil, false
	}
	for i, c := range p.rest[1:] {
		switch {
		case c == '"':
			s := p.rest[1 : i+1]
			p.rest = p.rest[i+2:]
			return s, true
		case c < ' ' || c > '~' || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// count reads a whole number of 1 to name.MaxTokens.
func (p *plainBody) count() (n int64, ok bool) {
	i := 0
	for ; i < len(p.rest) && i < 17 && p.rest[i] >= '0' && p.rest[i] <= '9'; i++ {
		n = 10*n + int64(p.rest[i]-'0')
	}
	if i == 0 || p.rest[0] == '0' || n > name.MaxTokens {
		return 0, false
	}
	p.rest = p.rest[i:]
	return n, true
}

// object reads the object and nothing behind it. It calls field with each field's name;
// field reads the value.
func (p *plainBody) object(field func(key []byte) bool) bool {
	if !p.take('{') {
		return false
	}
	for {
		key, ok := p.text()
		if !ok || !p.take(':') || !field(key) {
			return false
		}
		if p.take(',') {
			continue
		}
		return p.take('}') && len(p.rest) == 0
	}
}

// plainMovement are the fields of an acquire or release that plainBody reads.
type plainMovement struct {
	tokens          int64
	requestID, site string
	wait            string // of an acquire only
	waits           bool   // wait was given
}

// read reads a body. It reports false, with m in no defined state, if decodeJSON has to
// read the body.
func (m *plainMovement) read(body []byte) bool {
	p := plainBody{body}
	var tokens, id, site bool
	text := func(into *string, given *bool) bool {
		s, ok := p.text()
		ok = ok && !*given
		*into, *given = string(s), true
		return ok
	}
	return p.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "tokens":
			if tokens {
				return false
			}
			m.tokens, tokens = p.count()
			return tokens
		case "request_id":
			return text(&m.requestID, &id)
		case "site":
			return text(&m.site, &site)
		case "wait":
			return text(&m.wait, &m.waits)
		}
		return false
	})
}

// plainAcquire reads the body of an acquire into in, or reports false and leaves in as it
// is.
func plainAcquire(body []byte, in *samyav1.AcquireRequest) bool {
	var m plainMovement
	if !m.read(body) {
		return false
	}
	if m.waits {
		wait, err := time.ParseDuration(m.wait)
		if err != nil || name.Wait("wait", wait) != nil {
			return false
		}
		in.Wait = durationpb.New(wait)
	}
	in.Tokens, in.RequestId, in.Site = m.tokens, m.requestID, m.site
	return true
}

// plainRelease reads the body of a release into in, or reports false and leaves in as it
// is.
func plainRelease(body []byte, in *samyav1.ReleaseRequest) bool {
	var m plainMovement
	if !m.read(body) || m.waits {
		return false
	}
	in.Tokens, in.RequestId, in.Site = m.tokens, m.requestID, m.site
	return true
}

// appendTo appends the answer as encoding/json encodes it.
func (m *moved) appendTo(b []byte) ([]byte, error) {
	if m.Lease != nil {
		whole, err := json.Marshal(m)
		return append(b, whole...), err
	}
	b = appendText(append(b, `{"entity":`...), m.Entity)
	b = strconv.AppendInt(append(b, `,"tokens":`...), m.Tokens, 10)
	b = appendText(append(b, `,"request_id":`...), m.RequestID)
	b = appendText(append(b, `,"site":`...), m.Site)
	b = strconv.AppendInt(append(b, `,"left":`...), m.Left, 10)
	if m.Parked {
		b = append(b, `,"parked":true`...)
	}
	return append(b, '}'), nil
}

// appendText appends a JSON string as encoding/json encodes it.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			// Marshalling a string never fails.
			quoted, _ := json.Marshal(s)
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// writeMoved writes the answer to an acquire or a release.
func writeMoved(w http.ResponseWriter, m *moved) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	b, err := m.appendTo((*buffer)[:0])
	if err != nil {
		return apierr.Wrap(apierr.Internal, err)
	}
	b = append(b, '\n')
	writeAnswer(w, http.StatusOK, b)
	if cap(b) <= smallBody {
		*buffer = b
	}
	return nil
}
