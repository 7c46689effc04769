package compare

import (
	"context"

	"github.com/samya-db/samya/devcluster/proc"
)

// Kind says what a system's answers are worth.
type Kind string

// The kinds of systems.
const (
	// Durable: what was answered outlives a crash of the machine.
	Durable Kind = "durable"
	// Volatile: a crash may take back what was answered.
	Volatile Kind = "volatile"
	// Control: a bound of what can be reached; nothing is granted.
	Control Kind = "control"
)

// The names of the systems and of samya's ways, as results and goals have them.
const (
	Samya         = "samya"
	RedisAlways   = "redis, always"
	RedisEverySec = "redis, everysec"
	Etcd          = "etcd"
	Postgres      = "postgres"
	BareSync      = "bare sync"
	BareGRPC      = "bare gRPC"
	BareHTTP      = "bare net/http"
)

// System is a server that is measured.
type System interface {
	// About says what it is and how it can be asked.
	About() About
	// Start starts it in an environment of its own. When it fails what it returns
	// is closed if it is not nil, and what was started by [Env.Programs] is stopped.
	Start(ctx context.Context, env *Env) (Running, error)
}

// About says what a system is.
type About struct {
	// Name is one of the names above, or another.
	Name string
	// Kind is what its answers are worth.
	Kind Kind
	// Promise says in words what is durable when a grant is answered.
	Promise string
	// Ways are the ways in which it is asked, each measured by itself.
	Ways []Way
}

// Way is a way of asking a system.
type Way struct {
	// Name tells it from the other ways of the system.
	Name string
	// Callers is how many ask at the same time, each the next when the last is answered.
	Callers int
	// Batch is how many operations a caller asks for at once.
	Batch int
	// HotOnly leaves the workload of many entities out.
	HotOnly bool
}

// Env is where a system is started.
type Env struct {
	// Dir is an empty directory on the disk under test.
	Dir string
	// Programs starts processes; they are stopped when the measurement ends.
	Programs *proc.Programs

	elsewhere []string // directories outside of Dir
}

// Running is a system that was started.
type Running interface {
	// Processes are the ids of its processes; those that these start are theirs.
	Processes() []int
	// Open prepares one of its ways.
	Open(ctx context.Context, way string) (Driver, error)
	// Close lets go of what this process has of it.
	Close() error
}

// Books are kept by every system that is no control.
type Books interface {
	// Create makes entities of that many tokens each.
	Create(ctx context.Context, entities []string, tokens int64) error
	// Left reads how many tokens each entity has left.
	Left(ctx context.Context, entities []string) ([]int64, error)
}

// Driver asks a system in one way. Acquire may be called by as many goroutines
// as the way has callers.
type Driver interface {
	// Acquire takes one token for each request and sets granted, which is as
	// long, to whether it got it. caller is 0 to the way's callers less 1, and
	// has one call under way. An error says that the outcome of some request is
	// not known.
	Acquire(ctx context.Context, caller int, requests []Request, granted []bool) error
	// Close lets go of its connections.
	Close() error
}

// Selfmade is a driver that makes its load by another program.
type Selfmade interface {
	Driver
	// Measure makes load for about the time, in seconds, and tells of it.
	Measure(ctx context.Context, l *Load) (*Sample, error)
}

// Request asks for one token.
type Request struct {
	// Entity is the entity's name.
	Entity string
	// ID is the request's own id; see [Load].
	ID string
}
