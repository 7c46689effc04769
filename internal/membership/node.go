package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/versions"
)

// Role is the kind of a node in its cluster.
type Role string

// The roles.
const (
	RoleSite   Role = "site"
	RoleAppMgr Role = "appmgr"
)

// Node is a node's description of itself.
type Node struct {
	// Name is the name of the site or app manager, unique in its role: 1 to 63
	// lower-case letters, digits and '-'.
	Name string
	// Instance is the node's name among the nodes of its site, with the same bounds; empty
	// for a site of a single process and for an app manager. Builds of before nodes skip the
	// name and keep a node that has one out, so all processes of the cluster are upgraded
	// before a site gets nodes.
	Instance string
	// Term is the number of the take-over by which the node runs its site; at least 0, and 0
	// for a site of a single process. Of two nodes of a site, the node of the higher term runs
	// the site.
	Term int64
	// Standbys is how many other nodes of the site follow; 0 for a site of a single process.
	Standbys uint8
	// Region is where the node stands, with the same bounds.
	Region string
	// Role is the node's role.
	Role Role
	// Cluster is the node's cluster, with the same bounds.
	Cluster string
	// GRPC and HTTP are the host:port of its listeners, at most 128 bytes, and at most 112
	// with an Instance; empty for no listener.
	GRPC, HTTP string
	// Load is how busy the node says it is: 0 idle to 255 refusing work.
	Load uint8
	// Versions are the versions that the node's build speaks.
	Versions versions.Range
}

// ID returns the node's name in gossip, unique in the cluster: role, name and, if any,
// instance. So the nodes of a site do not take each other's place in gossip.
func (n Node) ID() string {
	id := string(n.Role) + "/" + n.Name
	if n.Instance != "" {
		id += "/" + n.Instance
	}
	return id
}

// Validate checks n; the error names every field at fault.
func (n Node) Validate() error {
	var roleErr error
	if n.Role != RoleSite && n.Role != RoleAppMgr {
		roleErr = &name.Error{Field: "role", Problem: fmt.Sprintf("%.32q, must be site or appmgr", string(n.Role))}
	}
	var instanceErr, termErr error
	most := maxAddress
	if n.Instance != "" {
		instanceErr, most = name.Site("instance", n.Instance), maxNodeAddress
		if n.Role != RoleSite {
			instanceErr = &name.Error{Field: "instance", Problem: "only a site has nodes"}
		}
	}
	if n.Term < 0 {
		termErr = &name.Error{Field: "term", Problem: fmt.Sprintf("%d, at least 0", n.Term)}
	}
	return errors.Join(
		name.Site("name", n.Name),
		name.Site("region", n.Region),
		name.Site("cluster", n.Cluster),
		roleErr, instanceErr, termErr,
		hostPort("grpc", n.GRPC, most),
		hostPort("http", n.HTTP, most),
	)
}

const (
	// maxAddress is the longest host:port, in bytes: two addresses, three names, two versions,
	// a term and the standbys must fit the 512 bytes that gossip has for a node.
	maxAddress = 128
	// maxNodeAddress is the same for a node of a site, which has a fourth name.
	maxNodeAddress = 112
)

// hostPort checks an address: at most that many bytes.
func hostPort(field, s string, most int) error {
	if s == "" {
		return nil
	}
	if len(s) > most {
		return &name.Error{Field: field, Problem: fmt.Sprintf("%d bytes, at most %d", len(s), most)}
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return &name.Error{Field: field, Problem: "must be host:port"}
	}
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return &name.Error{Field: field, Problem: "port must be 1 to 65535"}
	}
	return nil
}

// Health is whether gossip thinks a node alive.
type Health uint8

// The healths. Memberlist does not tell which nodes it merely suspects, and which dead
// nodes said that they leave.
const (
	// Alive: the node answers probes, or is suspected for less than the preset's
	// suspicion time.
	Alive Health = iota + 1
	// Dead: the node stopped answering, or said that it leaves.
	Dead
)

// String returns the health in lower case.
func (h Health) String() string {
	switch h {
	case Alive:
		return "alive"
	case Dead:
		return "dead"
	}
	return "unknown"
}

// Member is a node as this process sees it.
type Member struct {
	Node
	// Gossip is the host:port of its gossip listener.
	Gossip string
	// Health is the node's health according to gossip.
	Health Health
	// LastSeen is when this process last heard of the node: the node answered a probe, or
	// a change of it was gossiped. The node may have lived longer: another node may have
	// probed it since.
	LastSeen time.Time
	// Self reports whether the node is this process.
	Self bool
}

// metaVersion is the first byte of an encoded Node. Bytes after the known fields are
// skipped, so fields can be added without a new version. A new version is for metadata
// that an old node must not read.
const metaVersion = 1

// errMeta is in the chain of every error of decode.
var errMeta = errors.New("malformed node metadata")

// encode returns n for gossip: the version, the load, the texts, each after its length as
// an unsigned varint, and the versions that its build speaks, as such numbers too. Then come
// the instance, as a text, the term, as a number, and a byte for the standbys.
func (n Node) encode() []byte {
	b := make([]byte, 0, 256)
	b = append(b, metaVersion, n.Load)
	for _, s := range []string{string(n.Role), n.Name, n.Region, n.Cluster, n.GRPC, n.HTTP} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(n.Versions.Oldest))
	b = binary.AppendUvarint(b, uint64(n.Versions.Newest))
	b = binary.AppendUvarint(b, uint64(len(n.Instance)))
	b = append(b, n.Instance...)
	return append(binary.AppendUvarint(b, uint64(n.Term)), n.Standbys)
}

// text cuts a text and the length before it off b. It reports false if b is too short.
func text(b []byte) (s string, rest []byte, ok bool) {
	l, used := binary.Uvarint(b)
	if used <= 0 || l > uint64(len(b)-used) {
		return "", nil, false
	}
	return string(b[used : used+int(l)]), b[used+int(l):], true
}

// decode is encode's inverse. It refuses every node that Validate refuses.
func decode(b []byte) (Node, error) {
	if len(b) < 2 {
		return Node{}, fmt.Errorf("%w: %d bytes", errMeta, len(b))
	}
	if b[0] != metaVersion {
		return Node{}, fmt.Errorf("%w: version %d, this process reads %d", errMeta, b[0], metaVersion)
	}
	n := Node{Load: b[1]}
	b = b[2:]
	var role string
	var ok bool
	for _, f := range []*string{&role, &n.Name, &n.Region, &n.Cluster, &n.GRPC, &n.HTTP} {
		if *f, b, ok = text(b); !ok {
			return Node{}, fmt.Errorf("%w: cut short", errMeta)
		}
	}
	n.Role = Role(role)
	if n.Versions = versions.Of(versions.First); len(b) > 0 { // else the build is of the first version
		for _, v := range []*versions.Version{&n.Versions.Oldest, &n.Versions.Newest} {
			told, used := binary.Uvarint(b)
			if used <= 0 || told > math.MaxUint32 {
				return Node{}, fmt.Errorf("%w: its versions are cut short or out of range", errMeta)
			}
			*v, b = versions.Version(told), b[used:]
		}
	}
	if len(b) > 0 { // else the build is of before nodes
		if n.Instance, b, ok = text(b); !ok {
			return Node{}, fmt.Errorf("%w: its instance is cut short", errMeta)
		}
		term, used := binary.Uvarint(b)
		if used <= 0 || term > math.MaxInt64 {
			return Node{}, fmt.Errorf("%w: its term is cut short or out of range", errMeta)
		}
		n.Term = int64(term)
		if b = b[used:]; len(b) > 0 { // else the build is of before standbys
			n.Standbys = b[0]
		}
	}
	if err := n.Validate(); err != nil {
		return Node{}, fmt.Errorf("%w: %w", errMeta, err)
	}
	return n, nil
}
