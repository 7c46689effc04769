//go:build linux

package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ownNetwork makes the test's binary, in the part of samya, bring up its network first.
const ownNetwork = "SAMYA_TEST_IN_A_NETWORK_OF_ITS_OWN"

func init() {
	if os.Getenv(ownNetwork) == "" {
		return
	}
	if err := raiseLoopback(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// raiseLoopback brings up the loopback of a new network.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// TestListensOnLoopback: only its own machine reaches the ports of a default install.
func TestListensOnLoopback(t *testing.T) {
	for name, tc := range map[string]struct {
		args  []string
		ports []int
	}{
		"site":   {[]string{"site", "--name", "us", "--members", "us", "--data", filepath.Join(t.TempDir(), "us")}, []int{7001, 7101, 7201}},
		"appmgr": {[]string{"appmgr", "--name", "am", "--join", "127.0.0.1:7201"}, []int{8080, 8180, 8280}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], tc.args...)
			cmd.Args[0] = "samya"
			cmd.Env = append(os.Environ(), ownNetwork+"=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			}
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				missing(t, fmt.Sprintf("needs a network of its own: %v", err))
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			want := slices.Sorted(slices.Values(tc.ports))
			deadline := time.NewTimer(30 * time.Second)
			defer deadline.Stop()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				open := listening(t, cmd.Process.Pid)
				var ports []int
				for addr := range open {
					host, port, err := net.SplitHostPort(addr)
					if err != nil {
						t.Fatal(err)
					}
					if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
						t.Errorf("it listens on %s", addr)
					}
					n, err := strconv.Atoi(port)
					if err != nil {
						t.Fatal(err)
					}
					ports = append(ports, n)
				}
				slices.Sort(ports)
				ports = slices.Compact(ports)
				if slices.Equal(ports, want) {
					return
				}
				select {
				case <-tick.C:
				case <-deadline.C:
					t.Fatalf("it listens on ports %v, not on %v", ports, want)
				}
			}
		})
	}
}

// TestOpenRefused: without certificates, an access file and a key of gossip, no process
// that others can reach starts, unless forced.
func TestOpenRefused(t *testing.T) {
	s := newShell(t)
	data := t.TempDir()
	for line, says := range map[string]string{
		"site --name us --members us --data " + data + " --grpc 0.0.0.0:0":          "grpc: 0.0.0.0:0 can be reached from other machines: that needs certificates and an access file",
		"site --name us --members us --data " + data + " --http 192.0.2.1:0":        "http: 192.0.2.1:0 can be reached",
		"site --name us --members us --data " + data + " --gossip 0.0.0.0:0":        "gossip: 0.0.0.0:0 can be reached from other machines: that needs a key of gossip",
		"appmgr --name am --http 0.0.0.0:0":                                         "http: 0.0.0.0:0 can be reached",
		"appmgr --name am --grpc [::]:0":                                            "grpc: [::]:0 can be reached",
		"appmgr --name am --gossip 0.0.0.0:0":                                       "gossip: 0.0.0.0:0 can be reached",
		"site --name us --members us --data " + data + " --tls-ca x":                "tls-cert: missing",
		"appmgr --name am --tls-cert /no/such --tls-key /no/such --tls-ca /no/such": "/no/such",
		"appmgr --name am --access-file /no/such":                                   "/no/such",
		"entity list --token-file x --addr http://samya.example:8080":               "a token is not sent to another machine in clear",
		"entity list --tls-ca /no/such --addr https://127.0.0.1:1":                  "/no/such",
	} {
		if code, _, stderr := s.run(line); code == exitOK || !strings.Contains(stderr, says) {
			t.Errorf("samya %s: exit status %d, %q does not say %q", line, code, stderr, says)
		}
	}
}

// listening returns the addresses that a process's network listens on, TCP and UDP.
func listening(t *testing.T, pid int) map[string]bool {
	t.Helper()
	open := map[string]bool{}
	for file, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		if err != nil {
			if os.IsNotExist(err) && strings.HasSuffix(file, "6") {
				continue
			}
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) < 4 || fields[3] != state {
				continue
			}
			host, port, _ := strings.Cut(fields[1], ":")
			b, err := hex.DecodeString(host)
			n, perr := strconv.ParseUint(port, 16, 16)
			if err != nil || perr != nil {
				t.Fatalf("%q", fields[1])
			}
			// The kernel writes each word of four bytes in the machine's order.
			for i := 0; i+4 <= len(b); i += 4 {
				slices.Reverse(b[i : i+4])
			}
			open[net.JoinHostPort(net.IP(b).String(), strconv.FormatUint(n, 10))] = true
		}
		_ = f.Close()
	}
	return open
}
