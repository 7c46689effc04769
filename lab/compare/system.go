package compare

import (
	"context"

	"github.com/samya-db/samya/devcluster/proc"
)

// Kind is the durability of a system's answers.
type Kind string

// The kinds of systems.
const (
	// Durable: answers outlive a crash of the machine.
	Durable Kind = "durable"
	// Volatile: a crash may take back answers.
	Volatile Kind = "volatile"
	// Control: an upper bound; nothing is granted.
	Control Kind = "control"
)

// The names of the systems in results and goals.
const (
	Samya         = "samya"
	RedisAlways   = "redis, always"
	RedisNoIDs    = "redis, always, no ids"
	RedisEverySec = "redis, everysec"
	Etcd          = "etcd"
	SamyaEtcd     = "samya, log in etcd"
	EtcdPut       = "etcd, blind put"
	RedisWait     = "redis, WAIT 1"
	Postgres      = "postgres"
	BareSync      = "bare sync"
	BareGRPC      = "bare gRPC"
	BareHTTP      = "bare net/http"
)

// System is a server to measure.
type System interface {
	// About describes the system and the ways of asking it.
	About() About
	// Start starts the system in a new environment. If it fails, the caller closes a
	// non-nil result and stops the processes of [Env.Programs].
	Start(ctx context.Context, env *Env) (Running, error)
}

// About describes a system.
type About struct {
	// Name is a name from the list above, or another.
	Name string
	// Kind is the durability of the answers.
	Kind Kind
	// Promise describes the durability of an answered grant.
	Promise string
	// Settings are the settings that differ from the system's defaults.
	Settings string
	// Forgets says that no request id is remembered: a repeat takes tokens again.
	Forgets bool
	// Ways are the ways of asking, each measured by itself.
	Ways []Way
}

// Way is a way of asking a system.
type Way struct {
	// Name distinguishes the ways of a system.
	Name string
	// Callers is the number of concurrent callers.
	Callers int
	// Batch is the number of operations that a caller asks for at once.
	Batch int
	// HotOnly leaves out the workloads of many entities.
	HotOnly bool
	// Even adds the workload of 100,000 entities.
	Even bool
	// Sessions: the driver names the requests of a load itself, in sessions.
	Sessions bool
	// Offered makes an open loop: so many operations a second are due, evenly, whether or
	// not those before are answered. 0: each caller asks again after its answer.
	Offered int
}

// Env is the environment of a system.
type Env struct {
	// Dir is an empty directory on the disk under test.
	Dir string
	// Programs starts processes; the end of the measurement stops them.
	Programs *proc.Programs

	elsewhere []string // directories outside of Dir
}

// Running is a started system.
type Running interface {
	// Processes returns the ids of its processes, without their children.
	Processes() []int
	// Open prepares a way of asking.
	Open(ctx context.Context, way string) (Driver, error)
	// Close releases the resources of this process.
	Close() error
}

// Books are the accounts of a system. All systems but controls keep books.
type Books interface {
	// Create makes entities with the number of tokens each.
	Create(ctx context.Context, entities []string, tokens int64) error
	// Left returns the tokens left of each entity.
	Left(ctx context.Context, entities []string) ([]int64, error)
}

// Driver asks a system in a way. As many goroutines as the way has callers may call
// Acquire.
type Driver interface {
	// Acquire takes a token for each request, and sets granted[i] if requests[i] got
	// its token. Both slices have the same length. caller is in [0, callers of the
	// way), and makes a call at a time. An error says that the outcome of some
	// request is unknown.
	Acquire(ctx context.Context, caller int, requests []Request, granted []bool) error
	// Close closes the connections.
	Close() error
}

// Selfmade is a driver that makes its load with another program.
type Selfmade interface {
	Driver
	// Measure makes load for about the time of l and returns its figures.
	Measure(ctx context.Context, l *Load) (*Sample, error)
}

// Request asks for a token.
type Request struct {
	// Entity is the entity's name.
	Entity string
	// ID is the request's own id; see [Load]. Empty: the driver names the request.
	ID string
}
