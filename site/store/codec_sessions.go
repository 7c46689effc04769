package store

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/internal/session"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core/stored"
)

// appendSessions appends the news of sessions in a block.
func appendSessions(dst []byte, sessions []stored.Session) []byte {
	for i := range sessions {
		s := &sessions[i]
		size := 1 + protowire.SizeBytes(len(s.ID))
		if s.First > 0 {
			size += 1 + protowire.SizeVarint(s.First)
		}
		dst = protowire.AppendVarint(protowire.AppendTag(dst, 4, protowire.BytesType), uint64(size)) //nolint:gosec // a few bytes
		dst = protowire.AppendBytes(protowire.AppendTag(dst, 1, protowire.BytesType), s.ID[:])
		dst = appendField(dst, 2, s.First)
	}
	return dst
}

// readSessions reads the news of sessions in a block.
func readSessions(b *stored.Block, marks []*storev1.SessionMark) error {
	for _, m := range marks {
		if len(m.GetId()) != session.Bytes || m.GetFirst() > session.MaxSequence {
			return fmt.Errorf("request block %d: session %x acknowledges up to %d", b.Sequence, m.GetId(), m.GetFirst())
		}
		b.Sessions = append(b.Sessions, stored.Session{ID: session.ID(m.GetId()), First: m.GetFirst()})
	}
	return nil
}
