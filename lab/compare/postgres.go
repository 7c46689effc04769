package compare

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/samya-db/samya/devcluster/proc"
)

// PostgresSystem is a PostgreSQL server, or another server with its protocol and
// SQL, such as CockroachDB.
type PostgresSystem struct {
	// URL is the URL of a running server, as postgres://user@host:port/database. If
	// it is empty, Start starts a server.
	URL string
}

// About describes the system.
func (s PostgresSystem) About() About {
	a := About{
		Name: Postgres, Kind: Durable, Promise: "grant and request id are committed with synchronous_commit on",
		Ways: []Way{{Name: WaySingle, Callers: manyCallers, Batch: 1}},
	}
	if s.URL != "" {
		a.Promise = "as the server at --postgres-url is set"
	}
	return a
}

// postgresBin finds the directory of the server's programs: Debian has a directory
// for each version.
func postgresBin() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("postgres: %w (Debian has it in package postgresql)", ErrNotInstalled)
	}
	newest := found[0]
	for _, f := range found[1:] {
		if postgresVersion(f) > postgresVersion(newest) {
			newest = f
		}
	}
	return filepath.Dir(newest), nil
}

// postgresVersion returns the version in a path of Debian's; 0 for none.
func postgresVersion(initdb string) float64 {
	v, err := strconv.ParseFloat(filepath.Base(filepath.Dir(filepath.Dir(initdb))), 64)
	if err != nil {
		return 0
	}
	return v
}

// Installed fails if the server's programs are missing.
func (s PostgresSystem) Installed() error {
	if s.URL != "" {
		return nil
	}
	_, err := postgresBin()
	return err
}

// postgresUser returns the user of the server, which refuses to run as root. Nil
// means the user of this process.
func postgresUser() (*proc.User, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &proc.User{UID: uint32(uid), GID: uint32(gid)}, nil
	}
	return nil, errors.New("postgres refuses to run as root, and there is no user postgres or nobody")
}

// postgresSettings are the changed settings: the manual's advice for a server that
// writes much. None costs durability.
var postgresSettings = [][2]string{
	{"shared_buffers", "512MB"},
	{"max_wal_size", "8GB"},
	{"wal_buffers", "64MB"},
	{"max_connections", "200"},
	{"synchronous_commit", "on"},
	{"jit", "off"},
}

// Start starts a server, or connects to the server at the URL.
func (s PostgresSystem) Start(ctx context.Context, env *Env) (Running, error) {
	r := &runningPostgres{url: s.URL, schema: fmt.Sprintf("samya_compare_%d_%d", os.Getpid(), time.Now().UnixNano())}
	if s.URL == "" {
		if err := r.startServer(ctx, env); err != nil {
			return nil, err
		}
	}
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// startServer makes a database and starts its server.
func (r *runningPostgres) startServer(ctx context.Context, env *Env) error {
	bin, err := postgresBin()
	if err != nil {
		return err
	}
	as, err := postgresUser()
	if err != nil {
		return err
	}
	addrs, err := proc.FreePorts(ctx, 1)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return err
	}
	dir, err := env.dirFor(as, "postgres")
	if err != nil {
		return err
	}
	log := env.logFile("postgres")
	initdb, err := env.Programs.Start(proc.Program{
		Name: "initdb", Log: log, User: as,
		Argv: []string{filepath.Join(bin, "initdb"), "-D", dir, "-U", "samya", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"},
	})
	if err != nil {
		return err
	}
	select {
	case <-initdb.Died():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err != nil || initdb.Death().Err != nil {
		return errInitdb
	}
	argv := []string{filepath.Join(bin, "postgres"), "-D", dir, "-h", "127.0.0.1", "-p", port, "-k", ""}
	for _, s := range postgresSettings {
		argv = append(argv, "-c", s[0]+"="+s[1])
	}
	// SIGINT ends the server without waiting for its clients.
	p, err := env.Programs.Start(proc.Program{Name: "postgres", Log: log, User: as, Argv: argv, StopSignal: syscall.SIGINT})
	if err != nil {
		return err
	}
	r.process, r.url = p, "postgres://samya@"+addrs[0]+"/postgres?sslmode=disable"
	return poll(ctx, p, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, r.url)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// errInitdb says that initdb failed; the log says why.
var errInitdb = errors.New("initdb failed")

type runningPostgres struct {
	url     string
	schema  string
	process *proc.Process // nil for a server at a URL
	pool    *pgxpool.Pool
}

// prepare makes the tables, in a new schema.
func (r *runningPostgres) prepare(ctx context.Context) error {
	c, err := pgxpool.ParseConfig(r.url)
	if err != nil {
		return fmt.Errorf("the URL of postgres: %w", err)
	}
	c.MaxConns, c.MinConns = manyCallers, manyCallers
	c.ConnConfig.RuntimeParams["search_path"] = r.schema
	if r.pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return fmt.Errorf("connect to postgres: %w", err)
	}
	for _, sql := range []string{
		"CREATE SCHEMA " + r.schema,
		"CREATE TABLE " + r.schema + ".entities (name text PRIMARY KEY, tokens bigint NOT NULL)",
		"CREATE TABLE " + r.schema + ".requests (id text PRIMARY KEY, granted boolean NOT NULL)",
	} {
		if _, err := r.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Processes returns the server's process if Start started it.
func (r *runningPostgres) Processes() []int {
	if r.process == nil {
		return nil
	}
	return []int{r.process.PID()}
}

// Close drops the tables of a server at a URL, and closes the connections.
func (r *runningPostgres) Close() error {
	if r.pool == nil {
		return nil
	}
	defer r.pool.Close()
	if r.process != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if _, err := r.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+r.schema+" CASCADE"); err != nil {
		return fmt.Errorf("drop the tables: %w", err)
	}
	return nil
}

// Create inserts the entities.
func (r *runningPostgres) Create(ctx context.Context, entities []string, tokens int64) error {
	_, err := r.pool.Exec(ctx, "INSERT INTO entities SELECT name, $2 FROM unnest($1::text[]) AS name", entities, tokens)
	return err
}

// Left reads the entities.
func (r *runningPostgres) Left(ctx context.Context, entities []string) ([]int64, error) {
	rows, err := r.pool.Query(ctx, "SELECT name, tokens FROM entities WHERE name = ANY($1::text[])", entities)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]int64, len(entities))
	var name string
	var tokens int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &tokens}, func() error {
		byName[name] = tokens
		return nil
	}); err != nil {
		return nil, err
	}
	left := make([]int64, len(entities))
	for i, e := range entities {
		var ok bool
		if left[i], ok = byName[e]; !ok {
			return nil, fmt.Errorf("%s: %w", e, errNoEntity)
		}
	}
	return left, nil
}

// Open returns a driver on the open connections.
func (r *runningPostgres) Open(context.Context, string) (Driver, error) {
	return &postgresDriver{pool: r.pool}, nil
}

// postgresDriver makes a statement for each operation, and a statement is a
// transaction.
type postgresDriver struct{ pool *pgxpool.Pool }

// acquireSQL takes a token and remembers the request in one statement.
//
//go:embed postgres.sql
var acquireSQL string

// Acquire makes the operations in turn.
func (d *postgresDriver) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	for i, r := range requests {
		var err error
		if granted[i], err = d.acquire(ctx, r); err != nil {
			return fmt.Errorf("request %s: %w", r.ID, err)
		}
	}
	return nil
}

func (d *postgresDriver) acquire(ctx context.Context, r Request) (granted bool, err error) {
	for {
		err = d.pool.QueryRow(ctx, acquireSQL, r.ID, r.Entity).Scan(&granted)
		failed, ok := errors.AsType[*pgconn.PgError](err)
		if !ok {
			return granted, err
		}
		switch failed.Code {
		case "23505", // another attempt of the request came first
			"40001", "40P01": // transactions in each other's way, of which one has to begin anew
		default:
			return false, err
		}
	}
}

// Close does nothing: the connections belong to the running system.
func (*postgresDriver) Close() error { return nil }
