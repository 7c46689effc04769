package compare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// entityState is the last known state of an entity.
type entityState struct {
	left, revision int64
}

var errNoEntity = errors.New("no such entity")

// readEntity reads an entity.
func readEntity(r *etcdserverpb.RangeResponse) (entityState, error) {
	if len(r.GetKvs()) == 0 {
		return entityState{}, errNoEntity
	}
	kv := r.GetKvs()[0]
	left, err := strconv.ParseInt(string(kv.GetValue()), 10, 64)
	return entityState{left: left, revision: kv.GetModRevision()}, err
}

// The values of remembered requests.
const (
	etcdGranted = "1"
	etcdRefused = "0"
)

// casDriver makes a transaction for each operation. If the entity is in its last
// known state and the request is new, the transaction takes a token and remembers
// the request. Else it reads both, and the driver tries again. The callers take
// turns at an entity: etcd proposes and writes conflicting transactions too, and a
// hot entity would be 20 times as slow.
type casDriver struct {
	client *clientv3.Client
	seen   sync.Map // *casEntity by name
}

// casEntity is the last known state of an entity. Revision 0 means unknown: the
// comparison then fails.
type casEntity struct {
	turn sync.Mutex
	entityState
}

// Acquire makes the operations in turn.
func (d *casDriver) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	for i, r := range requests {
		var err error
		if granted[i], err = d.acquire(ctx, r); err != nil {
			return fmt.Errorf("request %s: %w", r.ID, err)
		}
	}
	return nil
}

func (d *casDriver) acquire(ctx context.Context, r Request) (bool, error) {
	of, _ := d.seen.LoadOrStore(r.Entity, &casEntity{})
	seen := of.(*casEntity)
	seen.turn.Lock()
	defer seen.turn.Unlock()
	entity, request := etcdEntity+r.Entity, etcdRequest+r.ID
	for {
		granted := seen.left > 0
		then := []clientv3.Op{clientv3.OpPut(request, etcdRefused)}
		if granted {
			then = []clientv3.Op{
				clientv3.OpPut(request, etcdGranted), clientv3.OpPut(entity, strconv.FormatInt(seen.left-1, 10)),
			}
		}
		done, err := d.client.Txn(ctx).If(
			clientv3.Compare(clientv3.ModRevision(entity), "=", seen.revision),
			clientv3.Compare(clientv3.CreateRevision(request), "=", 0),
		).Then(then...).Else(clientv3.OpGet(entity), clientv3.OpGet(request)).Commit()
		if err != nil {
			return false, err
		}
		if done.Succeeded {
			if granted {
				seen.entityState = entityState{left: seen.left - 1, revision: done.Header.GetRevision()}
			}
			return granted, nil
		}
		if seen.entityState, err = readEntity(done.Responses[0].GetResponseRange()); err != nil {
			return false, err
		}
		if known := done.Responses[1].GetResponseRange().GetKvs(); len(known) > 0 {
			return string(known[0].GetValue()) == etcdGranted, nil
		}
	}
}

// Close closes the connection.
func (d *casDriver) Close() error { return closeEtcd(d.client) }

// coalescing gathers the requests of all callers into a transaction, and makes the
// transactions in turn. It assumes that nobody else writes its entities; each
// transaction checks this.
type coalescing struct {
	client *clientv3.Client
	asked  chan *asking
	stop   context.CancelFunc
	ended  chan struct{}
	seen   map[string]entityState // used by loop only
}

// asking is a request with a waiting caller.
type asking struct {
	Request
	granted bool
	err     error
	done    chan struct{}
}

func newCoalescing(client *clientv3.Client) *coalescing {
	ctx, stop := context.WithCancel(context.Background())
	d := &coalescing{
		client: client, asked: make(chan *asking, maxTxnRequests), stop: stop,
		ended: make(chan struct{}), seen: make(map[string]entityState),
	}
	go d.loop(ctx)
	return d
}

// Acquire hands the requests to the loop.
func (d *coalescing) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	for i, r := range requests {
		a := &asking{Request: r, done: make(chan struct{})}
		select {
		case d.asked <- a:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if a.err != nil {
			return fmt.Errorf("request %s: %w", r.ID, a.err)
		}
		granted[i] = a.granted
	}
	return nil
}

// Close ends the loop and closes the connection.
func (d *coalescing) Close() error {
	d.stop()
	<-d.ended
	return closeEtcd(d.client)
}

// loop makes transactions until ctx ends.
func (d *coalescing) loop(ctx context.Context) {
	defer close(d.ended)
	for {
		var batch []*asking
		select {
		case a := <-d.asked:
			batch = append(batch, a)
		case <-ctx.Done():
			return
		}
		for more := true; more && len(batch) < maxTxnRequests; {
			select {
			case a := <-d.asked:
				batch = append(batch, a)
			default:
				more = false
			}
		}
		err := d.commit(ctx, batch)
		for _, a := range batch {
			a.err = err
			close(a.done)
		}
	}
}

// commit settles a batch.
func (d *coalescing) commit(ctx context.Context, batch []*asking) error {
	open := batch
	for len(open) > 0 {
		var compares []clientv3.Cmp
		var then, otherwise []clientv3.Op
		left := make(map[string]int64)
		var entities []string
		for _, a := range open {
			n, met := left[a.Entity]
			if !met {
				state := d.seen[a.Entity]
				n = state.left
				entities = append(entities, a.Entity)
				compares = append(compares, clientv3.Compare(clientv3.ModRevision(etcdEntity+a.Entity), "=", state.revision))
				otherwise = append(otherwise, clientv3.OpGet(etcdEntity+a.Entity))
			}
			a.granted = n > 0
			value := etcdRefused
			if a.granted {
				n, value = n-1, etcdGranted
			}
			left[a.Entity] = n
			compares = append(compares, clientv3.Compare(clientv3.CreateRevision(etcdRequest+a.ID), "=", 0))
			then = append(then, clientv3.OpPut(etcdRequest+a.ID, value))
		}
		for _, a := range open {
			otherwise = append(otherwise, clientv3.OpGet(etcdRequest+a.ID))
		}
		for _, e := range entities {
			then = append(then, clientv3.OpPut(etcdEntity+e, strconv.FormatInt(left[e], 10)))
		}
		done, err := d.client.Txn(ctx).If(compares...).Then(then...).Else(otherwise...).Commit()
		if err != nil {
			return err
		}
		if done.Succeeded {
			for _, e := range entities {
				d.seen[e] = entityState{left: left[e], revision: done.Header.GetRevision()}
			}
			return nil
		}
		for i, e := range entities {
			if d.seen[e], err = readEntity(done.Responses[i].GetResponseRange()); err != nil {
				return fmt.Errorf("%s: %w", e, err)
			}
		}
		var unknown []*asking
		for i, a := range open {
			if kvs := done.Responses[len(entities)+i].GetResponseRange().GetKvs(); len(kvs) > 0 {
				a.granted = string(kvs[0].GetValue()) == etcdGranted
			} else {
				unknown = append(unknown, a)
			}
		}
		open = unknown
	}
	return nil
}
