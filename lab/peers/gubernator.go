package peers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
)

// Gubernator starts a Gubernator that keeps its limits in memory, a peer by itself. It returns
// the address of its gRPC listener, and the process.
func Gubernator(ctx context.Context, programs *proc.Programs, bin, dir string) (addr string, p *proc.Process, err error) {
	addrs, err := proc.FreePorts(ctx, 3)
	if err != nil {
		return "", nil, err
	}
	p, err = programs.Start(proc.Program{Name: "gubernator", Log: filepath.Join(dir, "gubernator.log"), Argv: []string{
		"env", "GUBER_GRPC_ADDRESS=" + addrs[0], "GUBER_ADVERTISE_ADDRESS=" + addrs[0], "GUBER_HTTP_ADDRESS=" + addrs[1],
		"GUBER_MEMBERLIST_ADDRESS=" + addrs[2], "GUBER_MEMBERLIST_BIND_ADDRESS=" + addrs[2], "GUBER_MEMBERLIST_KNOWN_NODES=" + addrs[2],
		"GUBER_LOG_LEVEL=warn", "OTEL_TRACES_EXPORTER=none", bin,
	}})
	if err != nil {
		return "", nil, err
	}
	if err := listens(ctx, p, addrs[0]); err != nil {
		return "", nil, err
	}
	return addrs[0], p, ownsLimits(ctx, addrs[0])
}

// ownsLimits waits until a Gubernator knows of itself as a peer, and decides.
func ownsLimits(ctx context.Context, addr string) (err error) {
	h, err := DialHits(addr, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	for {
		_, hit := h.Hit(ctx)
		if hit == nil {
			return nil
		}
		if wan.Wait(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("gubernator does not decide: %w", hit)
		}
	}
}

// Hits asks a Gubernator for a hit of a limit, time and again. Its messages are written and
// read by hand: its module has the types, and two hundred modules beside.
type Hits struct {
	conn *grpc.ClientConn
	ask  wire
}

// DialHits returns hits of a leaky bucket of so many in a minute.
func DialHits(addr string, limit int64) (*Hits, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return &Hits{conn: conn, ask: askOf(limit)}, nil
}

// The fields of RateLimitReq and RateLimitResp of gubernator.proto.
const (
	askedName, askedKey, askedHits, askedLimit, askedDuration, askedAlgorithm = 1, 2, 3, 4, 5, 6
	toldStatus, toldError                                                     = 1, 5

	leakyBucket = 1
)

// askOf is a GetRateLimitsReq with a single hit.
func askOf(limit int64) wire {
	var one []byte
	for field, text := range map[protowire.Number]string{askedName: "lab", askedKey: "hot"} {
		one = protowire.AppendString(protowire.AppendTag(one, field, protowire.BytesType), text)
	}
	for field, n := range map[protowire.Number]int64{askedHits: 1, askedLimit: limit, askedDuration: 60_000, askedAlgorithm: leakyBucket} {
		one = protowire.AppendVarint(protowire.AppendTag(one, field, protowire.VarintType), uint64(n)) //nolint:gosec // above 0
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), one)
}

var errUnclear = errors.New("an answer of gubernator that says neither yes nor no")

// Hit takes a hit, and reports whether it was within the limit.
func (h *Hits) Hit(ctx context.Context) (bool, error) {
	var told wire
	if err := h.conn.Invoke(ctx, "/pb.gubernator.V1/GetRateLimits", &h.ask, &told, grpc.ForceCodec(wires{})); err != nil {
		return false, err
	}
	number, kind, n := protowire.ConsumeTag(told)
	one, m := protowire.ConsumeBytes(told[max(0, n):])
	if number != 1 || kind != protowire.BytesType || n < 0 || m < 0 {
		return false, errUnclear
	}
	return within(one)
}

// within reads a RateLimitResp.
func within(one []byte) (bool, error) {
	under := true
	for len(one) > 0 {
		number, kind, n := protowire.ConsumeTag(one)
		if n < 0 {
			return false, errUnclear
		}
		value := one[n:]
		m := protowire.ConsumeFieldValue(number, kind, value)
		if m < 0 {
			return false, errUnclear
		}
		switch number {
		case toldStatus:
			status, _ := protowire.ConsumeVarint(value)
			under = status == 0
		case toldError:
			text, _ := protowire.ConsumeString(value)
			return false, fmt.Errorf("gubernator: %s", text)
		}
		one = value[m:]
	}
	return under, nil
}

// Close closes the connection.
func (h *Hits) Close() error { return h.conn.Close() }

// wire is a message in its bytes.
type wire []byte

// wires passes messages on as they are.
type wires struct{}

func (wires) Marshal(v any) ([]byte, error) { return *v.(*wire), nil }

func (wires) Unmarshal(data []byte, v any) error {
	*v.(*wire) = append(wire(nil), data...)
	return nil
}

func (wires) Name() string { return "proto" }
