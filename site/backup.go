package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/store"
)

// itself serves samyav1.SiteService.
type itself struct {
	samyav1.UnimplementedSiteServiceServer
	*Site
}

// Backup implements samyav1.SiteServiceServer. A site that members do not vouch for makes
// none: its data may be an older copy.
func (s itself) Backup(r *samyav1.BackupRequest, stream grpc.ServerStreamingServer[samyav1.BackupResponse]) error {
	if named := r.GetSite(); named != "" {
		if err := name.Site("site", named); err != nil {
			return apierr.FromName(err)
		}
		if named != s.cfg.Name {
			return apierr.Invalid("site", "a site backs up its own data, and this is "+s.cfg.Name)
		}
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-s.closing:
			cancel(apierr.ShuttingDown)
		case <-ctx.Done():
		}
	}()
	switch st, err := s.engine.Status(ctx); {
	case err != nil:
		return s.broken(err, asked{})
	case st.Missing > 0:
		return s.failure(answer.Answer{Code: answer.Unvouched, Missing: st.Missing}, asked{})
	}
	return s.backedUp(s.store.Backup(ctx, &backupParts{stream}, s.cfg.Build.Version))
}

// backedUp turns an error of a backup into the error for clients.
func (s *Site) backedUp(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrBackupUnderWay), errors.Is(err, store.ErrBackupTooSlow):
		e := apierr.Overload(s.cfg.Name, time.Minute)
		e.Message, e.Err = err.Error(), err
		return e
	case errors.Is(err, apierr.ShuttingDown):
		return s.failure(answer.Answer{Code: answer.Stopping}, asked{})
	}
	return apierr.From(err)
}

// partBytes is the longest part of a backup in a message, in bytes.
const partBytes = 256 << 10

// backupParts sends in messages all bytes written.
type backupParts struct {
	stream grpc.ServerStreamingServer[samyav1.BackupResponse]
}

// Write implements io.Writer.
func (p *backupParts) Write(b []byte) (int, error) {
	for sent := 0; sent < len(b); sent += partBytes {
		part := b[sent:min(sent+partBytes, len(b))]
		if err := p.stream.Send(&samyav1.BackupResponse{Data: part}); err != nil {
			return sent, fmt.Errorf("sending the backup: %w", err)
		}
	}
	return len(b), nil
}
