package frames

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/internal/fields"
)

// preface is the first line of both sides.
const preface = "samya/1\n"

// kind is the kind of a frame.
type kind byte

const (
	hello kind = iota + 1
	message
	end
	ping
	pong
)

// headerBytes is the size of the head of a frame.
const headerBytes = 4

// mostContent is the most that the head of a frame can tell, in bytes.
const mostContent = 1<<24 - 1

// errMalformed: the other side sends something else than a frame.
var errMalformed = errors.New("frames: malformed")

// putHeader fills in the head of a frame.
func putHeader(b []byte, k kind, content int) {
	binary.BigEndian.PutUint32(b, uint32(k)<<24|uint32(content)) //nolint:gosec // at most mostContent
}

// header reads the head of a frame.
func header(b []byte) (k kind, content int) {
	h := binary.BigEndian.Uint32(b)
	return kind(h >> 24), int(h & mostContent)
}

// greeting is the content of a hello.
type greeting struct {
	// most is the largest message that this side takes, in bytes.
	most int
	// name is the name of a server, as ListSites tells it; empty for a client.
	name string
	// authorization is the client's credential, with the form of the header field
	// Authorization; empty for none.
	authorization string
}

// Fields of a greeting. A side passes over fields that it does not know.
const (
	fieldMost          = 1
	fieldName          = 2
	fieldAuthorization = 3
)

// maxHello bounds a greeting, in bytes: as much as the header fields of a call.
const maxHello = 16 << 10

// appendTo appends the encoded greeting.
func (g *greeting) appendTo(b []byte) []byte {
	b = protowire.AppendTag(b, fieldMost, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(g.most)) //nolint:gosec // at least 0
	for _, f := range []struct {
		number protowire.Number
		text   string
	}{{fieldName, g.name}, {fieldAuthorization, g.authorization}} {
		if f.text != "" {
			b = protowire.AppendTag(b, f.number, protowire.BytesType)
			b = protowire.AppendString(b, f.text)
		}
	}
	return b
}

// readGreeting reads a greeting.
func readGreeting(b []byte) (g greeting, err error) {
	if err := fields.Each(b, func(f fields.Field) error {
		switch {
		case f.Num == fieldMost && f.Kind == protowire.VarintType:
			g.most = int(min(f.Number, mostContent)) //nolint:gosec // bounded
		case f.Num == fieldName && f.Kind == protowire.BytesType:
			g.name = string(f.Bytes)
		case f.Num == fieldAuthorization && f.Kind == protowire.BytesType:
			g.authorization = string(f.Bytes)
		}
		return nil
	}); err != nil {
		return g, fmt.Errorf("%w: a greeting: %w", errMalformed, err)
	}
	return g, nil
}
