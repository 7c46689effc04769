package transports

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/tlsconf"
)

const (
	// startTime bounds the start of a server.
	startTime = 30 * time.Second
	// lookEvery is the interval between two looks for a server that starts.
	lookEvery = 20 * time.Millisecond
	// grace is the time in which a server may end by itself.
	grace = 5 * time.Second
	// certificateTime is how long the certificate of a run is good.
	certificateTime = 24 * time.Hour
)

// server is a started server of a way.
type server struct {
	way      *way
	addr     string
	process  *proc.Process
	security credentials.TransportCredentials // of its clients
}

// starter starts servers that keep logs and certificates in a directory.
type starter struct {
	self, dir string
	programs  *proc.Programs
	// cert and key are the files of the servers' certificate, and secure are the
	// credentials of clients that trust it.
	cert, key string
	secure    credentials.TransportCredentials
}

// newStarter makes a certificate. The caller stops the programs.
func newStarter(self, dir string, programs *proc.Programs) (*starter, error) {
	s := &starter{self: self, dir: dir, programs: programs}
	ca, err := devca.Create(filepath.Join(dir, "ca"), "transports", certificateTime)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	if s.cert, s.key, err = ca.Issue(tlsconf.Identity{Kind: tlsconf.Site, Name: "us"}, []string{"127.0.0.1"}, certificateTime); err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "ca", devca.CertFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("read the certificate: there is none")
	}
	s.secure = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots})
	return s, nil
}

// start starts a server of a way, and waits until it listens.
func (s *starter) start(ctx context.Context, w *way, secure bool) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	addrs, err := proc.FreePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	started := &server{way: w, addr: addrs[0], security: insecure.NewCredentials()}
	argv := []string{s.self, ServeCommand, addrs[0], w.name}
	if secure {
		argv = append(argv, s.cert, s.key)
		started.security = s.secure
	}
	log := filepath.Join(s.dir, fmt.Sprintf("%d.log", len(s.programs.Processes())))
	if started.process, err = s.programs.Start(proc.Program{Name: w.name, Argv: argv, Log: log}); err != nil {
		return nil, err
	}
	return started, started.listens(ctx)
}

// listens waits until a server listens.
func (s *server) listens(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-s.process.Died():
			return fmt.Errorf("the server of %s has ended: %s", s.way.name, s.process.Tail(1))
		case <-ctx.Done():
			return fmt.Errorf("wait for the server of %s (%w): %w", s.way.name, err, context.Cause(ctx))
		case <-look.C:
		}
	}
}
