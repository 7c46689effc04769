package site

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Nodes is the node that runs a site, if several nodes may; see package
// standby.
type Nodes interface {
	// Stalled returns why the site takes no requests for the moment, or nil. ErrHandedOver
	// says that another node is about to take them.
	Stalled() error
	// Watch calls giveUp again and again while another node may have taken over, until ctx
	// ends. Calls under way get no answer then, or a late one.
	Watch(ctx context.Context, giveUp func())
	// List returns the nodes of the site, Last the number of the last commit.
	List() ([]NodeStatus, error)
	Last() uint64
	// Standbys is how many other nodes follow.
	Standbys() int
	// Forget has the site keep nothing for a node that never comes back.
	Forget(node string) error
	// HandOver has another node go on with the site; empty for the one that is least
	// behind. quiet waits until no request is under way, or ctx ends.
	HandOver(ctx context.Context, to string, quiet func(context.Context)) (string, error)
}

// ErrHandedOver: this node has had another node go on with the site.
var ErrHandedOver = errors.New("the site was handed over")

// NodeStatus is a node's word of itself.
type NodeStatus struct {
	Name          string
	Active        bool
	Last, Durable uint64
	Copies        bool
	Build, HTTP   string
	Told          time.Time
}

// nodes returns the node that runs the site, if the request names this site.
func (s itself) nodes(named string) (Nodes, error) {
	if named != "" {
		if err := name.Site("site", named); err != nil {
			return nil, apierr.FromName(err)
		}
		if named != s.cfg.Name {
			return nil, apierr.Invalid("site", "a site knows its own nodes, and this is "+s.cfg.Name)
		}
	}
	return s.cfg.Nodes, nil
}

// noNodes is the answer of a site of a single process.
func (s itself) noNodes() error {
	return apierr.Invalid("site", "site "+s.cfg.Name+" is a single process with a log of its own: it has no other nodes")
}

// ListNodes implements samyav1.SiteServiceServer.
func (s itself) ListNodes(_ context.Context, r *samyav1.ListNodesRequest) (*samyav1.ListNodesResponse, error) {
	nodes, err := s.nodes(r.GetSite())
	if err != nil || nodes == nil {
		return &samyav1.ListNodesResponse{}, err
	}
	all, err := nodes.List()
	if err != nil {
		return nil, apierr.From(err)
	}
	resp := &samyav1.ListNodesResponse{LastCommit: nodes.Last()}
	for _, n := range all {
		resp.Nodes = append(resp.Nodes, &samyav1.SiteNode{
			Name: n.Name, Active: n.Active, LastCommit: n.Last, DurableCommit: n.Durable, Copies: n.Copies,
			Build: n.Build, HttpAddress: n.HTTP, ToldAt: timestamppb.New(n.Told),
		})
	}
	return resp, nil
}

// HandOver implements samyav1.SiteServiceServer.
func (s itself) HandOver(ctx context.Context, r *samyav1.HandOverRequest) (*samyav1.HandOverResponse, error) {
	nodes, err := s.nodes(r.GetSite())
	if err == nil && nodes == nil {
		err = s.noNodes()
	}
	if err == nil && r.GetNode() != "" {
		err = name.Site("node", r.GetNode())
	}
	if err != nil {
		return nil, apierr.From(err)
	}
	to, err := nodes.HandOver(ctx, r.GetNode(), s.engine.Quiet)
	if err != nil {
		return nil, apierr.From(err)
	}
	return &samyav1.HandOverResponse{Node: to}, nil
}

// ForgetNode implements samyav1.SiteServiceServer.
func (s itself) ForgetNode(_ context.Context, r *samyav1.ForgetNodeRequest) (*samyav1.ForgetNodeResponse, error) {
	nodes, err := s.nodes(r.GetSite())
	if err == nil && nodes == nil {
		err = s.noNodes()
	}
	if err == nil {
		err = name.Site("node", r.GetNode())
	}
	if err == nil {
		err = nodes.Forget(r.GetNode())
	}
	if err != nil {
		return nil, apierr.From(err)
	}
	return &samyav1.ForgetNodeResponse{}, nil
}
