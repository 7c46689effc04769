package access

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The metadata in which an app manager tells a site of its caller. Sites take it from app
// managers only.
const (
	callerKey = "samya-caller"
	scopeKey  = "samya-scope"
)

// Unary is the guard as an interceptor of unary calls.
func (g *Guard) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return g.unary(ctx, req, info, handler, shown(ctx))
}

// unary lets the caller with credentials make a call.
func (g *Guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler, c credentials) (any, error) {
	s, err := g.admit(info.FullMethod, c)
	if err != nil {
		return nil, g.refuse(s, peerAddress(ctx), req, err)
	}
	s.relayed(ctx)
	release, err := g.begin(s, req)
	if err != nil {
		return nil, g.refuse(s, peerAddress(ctx), req, err)
	}
	defer release()
	var resp any
	err = g.audited(s, req, func() (err error) {
		resp, err = handler(context.WithValue(ctx, sessionKey{}, s), req)
		return err
	})
	if err != nil {
		return nil, err
	}
	cut(s.scope, resp)
	return resp, nil
}

// begin lets a request in, or returns why not. The caller must call release at the end.
func (g *Guard) begin(s *session, req any) (release func(), err error) {
	if s.rule.Least == methods.Nobody {
		return func() {}, nil
	}
	if err := s.permit(req); err != nil {
		return nil, err
	}
	if s.caller.Kind == "" {
		if err := g.buckets.take(s.caller.Name, weight(req)); err != nil {
			return nil, err
		}
	}
	if g.slots == nil {
		return func() {}, nil
	}
	select {
	case g.slots <- struct{}{}:
		return func() { <-g.slots }, nil
	default:
		return nil, apierr.Overload("", time.Second)
	}
}

// changes reports whether a request of the session may change something. A dry run does not.
func (s *session) changes(req any) bool {
	dry, ok := req.(interface{ GetDryRun() bool })
	return s.rule.Change && (!ok || !dry.GetDryRun())
}

// audited makes a change between its two lines of the audit log, and any other request
// without lines. A change is not begun if its line cannot be written.
func (g *Guard) audited(s *session, req any, do func() error) error {
	if !s.changes(req) {
		return do()
	}
	r, err := g.begun(s, req)
	if err != nil {
		return err
	}
	return g.ended(r, req, do())
}

// begun writes the first line of a change.
func (g *Guard) begun(s *session, req any) (*auditRecord, error) {
	r := g.record(s, req)
	if m, ok := req.(proto.Message); ok && g.audit != nil {
		if b, err := protojson.Marshal(m); err == nil {
			r.Request = b
		}
	}
	if err := g.audit.add(&r); err != nil {
		g.metrics.changes.WithLabelValues("unwritten").Inc()
		g.log.ErrorContext(context.Background(), "a change is refused: it cannot be written down", "error", err)
		return nil, apierr.New(apierr.AuditFailed, "the change cannot be written down; nothing was done")
	}
	return &r, nil
}

// ended writes the second line of a change, and returns the error for its caller.
func (g *Guard) ended(r *auditRecord, req any, err error) error {
	outcome := "done"
	r.Time, r.Request, r.Outcome = g.now().UTC(), nil, "OK"
	if err != nil {
		outcome, r.Outcome = "failed", string(apierr.ReasonOf(err))
	}
	g.metrics.changes.WithLabelValues(outcome).Inc()
	if auditErr := g.audit.add(r); auditErr != nil {
		g.log.ErrorContext(context.Background(), "what became of a change cannot be written down", "error", auditErr)
		if err == nil {
			_, id := target(req)
			return apierr.Unknown(id, "", auditErr)
		}
	}
	return err
}

// record returns the beginning of a line of the audit log; req is nil for a request that
// was refused unread.
func (g *Guard) record(s *session, req any) auditRecord {
	r := auditRecord{Time: g.now().UTC(), Caller: s.caller.Name, Role: s.caller.Role.String(), Method: s.method}
	if s.behalf != "" {
		r.Caller, r.Via, r.Role = s.behalf, s.caller.Name, ""
	}
	r.Entity, r.RequestID = target(req)
	return r
}

// refuse counts a refusal, and adds the refusal of a change to the audit log: a single
// line, at most [refusedPerSecond] lines per caller. The request stays refused if the log
// fails.
func (g *Guard) refuse(s *session, address string, req any, err error) error {
	refused := g.refusal(err)
	if refused == nil || s == nil || !s.rule.Change || g.audit == nil {
		return refused
	}
	if g.refusals.take(s.caller.Name, 1) != nil {
		g.metrics.unrecorded.Inc()
		return refused
	}
	r := g.record(s, req)
	// The lengths of these texts are unchecked.
	r.Entity, r.RequestID = clip(r.Entity), clip(r.RequestID)
	r.Address, r.Outcome = address, string(apierr.ReasonOf(refused))
	if auditErr := g.audit.add(&r); auditErr != nil {
		g.metrics.unrecorded.Inc()
		g.log.ErrorContext(context.Background(), "the refusal of a change cannot be written down", "error", auditErr)
	}
	return refused
}

// clip bounds a text of a refused request, in bytes.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 256)], "") }

// peerAddress returns the network address of the caller; "" if unknown.
func peerAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

// Stream is the guard as an interceptor of streams.
func (g *Guard) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return g.stream(srv, stream, info, handler, shown(stream.Context()))
}

// stream lets the caller with credentials open a stream.
func (g *Guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler, shows credentials) error {
	s, err := g.admit(info.FullMethod, shows)
	if err != nil {
		return g.refuse(s, peerAddress(stream.Context()), nil, err)
	}
	s.address = peerAddress(stream.Context())
	ctx, release := g.streaming(context.WithValue(stream.Context(), sessionKey{}, s), func() error { return g.again(s, shows) })
	defer release()
	guarded := &guarded{ServerStream: stream, ctx: ctx, session: s}
	err = handler(srv, guarded)
	if over := context.Cause(ctx); ctx.Err() != nil && stream.Context().Err() == nil {
		err = g.refusal(over)
	}
	if guarded.change != nil {
		err = g.ended(guarded.change, nil, err)
	}
	return err
}

// again returns nil if a caller may go on with a call, and the reason if not.
func (g *Guard) again(s *session, c credentials) error {
	now, err := g.admit(s.method, c)
	if err != nil {
		return err
	}
	if !now.caller.equal(s.caller) {
		return unauthenticated("what the caller may do has changed; connect again")
	}
	return nil
}

// guarded is a stream that checks every message.
type guarded struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // it stands for that of the stream
	session *session
	// sending: the guard answers some operations itself.
	sending sync.Mutex
	// change is the first line of the audit log, once the stream has begun a change.
	change *auditRecord
}

// Context returns the stream's context, which also ends when the caller may not go on.
func (g *guarded) Context() context.Context { return g.ctx }

// SendMsg sends an answer.
func (g *guarded) SendMsg(m any) error {
	g.sending.Lock()
	defer g.sending.Unlock()
	return g.ServerStream.SendMsg(m)
}

// RecvMsg receives a request that the caller may make. In a stream of operations it
// answers and removes forbidden operations.
func (g *guarded) RecvMsg(m any) error {
	if err := g.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	s := g.session
	if operations, ok := m.(*samyav1.StreamRequest); ok {
		return g.sift(operations)
	}
	if s.rule.Least == methods.Nobody {
		return nil
	}
	if err := s.permit(m); err != nil {
		return s.guard.refuse(s, s.address, m, err)
	}
	if s.caller.Kind == "" {
		if err := s.guard.buckets.take(s.caller.Name, 1); err != nil {
			return s.guard.refuse(s, s.address, m, err)
		}
	}
	if !s.rule.Change {
		return nil
	}
	var err error
	g.change, err = s.guard.begun(s, m)
	return err
}

// sift answers the operations that the caller may not make, and removes them from m.
func (g *guarded) sift(m *samyav1.StreamRequest) error {
	s := g.session
	if s.caller.Kind != "" || s.scope.All() && s.guard.buckets == nil {
		return nil
	}
	slow := s.guard.refusal(s.guard.buckets.take(s.caller.Name, len(m.GetCalls())))
	kept := m.GetCalls()[:0]
	var replies []*samyav1.Reply
	for _, c := range m.GetCalls() {
		err := slow
		if err == nil {
			err = s.guard.refusal(permitOperation(s.scope, c.GetOperation()))
		}
		if err == nil {
			kept = append(kept, c)
			continue
		}
		replies = append(replies, &samyav1.Reply{
			Tag: c.GetTag(), Result: &samyav1.Result{Result: &samyav1.Result_Failure{Failure: apierr.From(err).Failure()}},
		})
	}
	m.Calls = kept
	if len(replies) == 0 {
		return nil
	}
	return g.SendMsg(&samyav1.StreamResponse{Replies: replies})
}

// shown returns the credentials of a call.
func shown(ctx context.Context) credentials {
	c := credentials{chain: tlsconf.PeerCertificates(ctx)}
	if v := metadata.ValueFromIncomingContext(ctx, "authorization"); len(v) > 0 {
		c.authorization = v[0]
	}
	return c
}

// maxTold bounds a name that proves nothing, in bytes: the history of limits keeps it.
const maxTold = 128

// relayed records the caller that an app manager, or a site with a front, tells.
func (s *session) relayed(ctx context.Context) {
	if v := metadata.ValueFromIncomingContext(ctx, callerKey); s.caller == anonymous && len(v) == 1 && len(v[0]) <= maxTold {
		s.told = printable(v[0])
	}
	if s.caller.Kind != tlsconf.AppManager && s.caller.Kind != tlsconf.Site {
		return
	}
	if v := metadata.ValueFromIncomingContext(ctx, callerKey); len(v) == 1 {
		s.behalf = v[0]
	}
	if v := metadata.ValueFromIncomingContext(ctx, scopeKey); len(v) > 0 {
		s.scope = Scope(v)
	}
}

// Relay returns a context for an app manager's calls to sites. The calls tell the name
// and the scope of the app manager's caller.
func Relay(ctx context.Context) context.Context {
	s := sessionOf(ctx)
	if s == nil || s.caller == anonymous {
		return ctx
	}
	pairs := []string{callerKey, printable(s.caller.Name)}
	for _, p := range s.scope {
		pairs = append(pairs, scopeKey, p)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// printable makes a name fit for a header.
func printable(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b[:min(len(b), 512)])
}
