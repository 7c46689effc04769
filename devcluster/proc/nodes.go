package proc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoEtcd says that sites have several nodes, and the program etcd is missing.
var ErrNoEtcd = errors.New("etcd not found: sites of several nodes keep their log in etcd")

// etcdMembers is the number of etcd's processes.
const etcdMembers = 3

// follows is in the /readyz of a node that follows.
const follows = " follows"

// planEtcd lays out the processes of an etcd for all sites.
func (c *Cluster) planEtcd(ctx context.Context, held *ports, logs string) error {
	if c.cfg.Nodes < 2 {
		return nil
	}
	program, err := exec.LookPath("etcd")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoEtcd, err)
	}
	var members []string
	for i := range etcdMembers {
		name := "etcd-" + nodeName(i)
		p := &Process{
			Name: name, Log: filepath.Join(logs, name+".log"), Data: filepath.Join(c.cfg.Dir, name),
			bin: program, page: "/health", spawn: c.spawn, died: c.report, stop: stopSignal,
		}
		for _, addr := range []*string{&p.HTTP, &p.Gossip} {
			if *addr, err = held.next(ctx); err != nil {
				return fmt.Errorf("ports of %s: %w", name, err)
			}
		}
		members = append(members, name+"=http://"+p.Gossip)
		c.etcd = append(c.etcd, p)
	}
	for _, p := range c.etcd {
		clients, peers := "http://"+p.HTTP, "http://"+p.Gossip
		p.Args = []string{
			"--name", p.Name, "--data-dir", p.Data, "--initial-cluster", strings.Join(members, ","),
			"--listen-client-urls", clients, "--advertise-client-urls", clients,
			"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
			"--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "warn",
		}
	}
	return nil
}

// startEtcd starts etcd, and waits until it has a leader.
func (c *Cluster) startEtcd(ctx context.Context) error {
	for _, p := range c.etcd {
		if err := p.Start(); err != nil {
			return err
		}
	}
	for _, p := range c.etcd {
		if err := p.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// planNodes lays out the nodes of a site beside the first.
func (c *Cluster) planNodes(ctx context.Context, held *ports, logs string, first *Process) error {
	if c.cfg.Nodes < 2 {
		return nil
	}
	var endpoints []string
	for _, p := range c.etcd {
		endpoints = append(endpoints, p.HTTP)
	}
	site := first.Name
	all := []*Process{first}
	for i := 1; i < c.cfg.Nodes; i++ {
		p, err := c.site(ctx, held, logs, site, site+"-"+nodeName(i))
		if err != nil {
			return err
		}
		p.Args = append(p.Args, "--members", strings.Join(c.cfg.Sites, ","))
		c.further = append(c.further, p)
		all = append(all, p)
	}
	for i, p := range all {
		p.Node = nodeName(i)
		p.Args = append(p.Args, "--log", "etcd", "--node", p.Node, "--etcd-endpoints", strings.Join(endpoints, ","))
	}
	if c.nodes == nil {
		c.nodes = make(map[string][]*Process)
	}
	c.nodes[site] = all
	return nil
}

// nodeName is the name of a node, by its number from 0.
func nodeName(n int) string { return string(rune('a' + n)) }

// Active waits until a node of a site serves, and returns it.
func (c *Cluster) Active(ctx context.Context, site string) (*Process, error) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	const every = 20 * time.Millisecond
	for {
		for _, p := range c.nodes[site] {
			if p.PID() != 0 && ready(ctx, client, p.HTTP+"/readyz") == nil {
				return p, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a node of %s: %w", site, ctx.Err())
		case <-time.After(every):
		}
	}
}
