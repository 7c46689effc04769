package compare

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/samya-db/samya/devcluster/etcd"
)

// WayPut1024 is the way of as many callers as share a busy stream.
const WayPut1024 = "1,024 callers"

// EtcdPuts is the bound of whatever makes a put for each operation: three members of etcd,
// and callers that put a key each time. It counts no tokens.
type EtcdPuts struct{}

// About describes the system.
func (EtcdPuts) About() About {
	return About{
		Name: EtcdPut, Kind: Control, Promise: "a key for each operation, in the logs of two members, synced",
		Ways: []Way{{Name: WaySingle, Callers: manyCallers, Batch: 1}, {Name: WayPut1024, Callers: streamCallers, Batch: 1}},
	}
}

// Installed fails if the server's program is missing.
func (EtcdPuts) Installed() error { return EtcdSystem{}.Installed() }

// Start starts the members.
func (EtcdPuts) Start(ctx context.Context, env *Env) (Running, error) {
	cluster, err := etcd.Start(ctx, etcd.Config{Dir: env.Dir})
	if err != nil {
		return nil, err
	}
	return &runningPuts{cluster}, nil
}

type runningPuts struct{ etcd *etcd.Cluster }

// Processes returns the members' processes.
func (r *runningPuts) Processes() []int { return membersOf(r.etcd) }

// Close stops the members.
func (r *runningPuts) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return r.etcd.Stop(ctx)
}

// Open connects to the members: a client for each, as a client asks a single member.
func (r *runningPuts) Open(context.Context, string) (Driver, error) {
	d := &putDriver{}
	for _, e := range r.etcd.Endpoints() {
		c, err := etcd.Dial(e)
		if err != nil {
			return nil, err
		}
		d.clients = append(d.clients, c)
	}
	return d, nil
}

type putDriver struct{ clients []*clientv3.Client }

// Acquire puts the requests in turn.
func (d *putDriver) Acquire(ctx context.Context, caller int, requests []Request, granted []bool) error {
	c := d.clients[caller%len(d.clients)]
	for i, r := range requests {
		if _, err := c.Put(ctx, etcdRequest+r.ID, etcdGranted); err != nil {
			return err
		}
		granted[i] = true
	}
	return nil
}

// Close closes the connections.
func (d *putDriver) Close() error {
	var first error
	for _, c := range d.clients {
		if err := closeEtcd(c); err != nil && first == nil {
			first = err
		}
	}
	return first
}
