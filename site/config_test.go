package site_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/store"
)

func goodConfig(dir string) site.Config {
	return site.Config{
		Config: node.Config{
			Cluster: "test", Name: "us", Region: "us", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0"}, Preset: "local",
		},
		DataDir: dir, Members: []string{"us", "eu", "as"},
	}
}

// TestConfigNamesTheField holds each setting's message. A bad setting is told before
// anything is made on disk.
func TestConfigNamesTheField(t *testing.T) {
	for _, c := range []struct {
		spoil          func(*site.Config)
		field, problem string
	}{
		{func(c *site.Config) { c.Cluster = "" }, "cluster", "empty, at least 1 character"},
		{func(c *site.Config) { c.Name = "US"; c.Members = nil }, "name", "'U' at position 1, allowed are lower-case letters, digits and '-'"},
		{func(c *site.Config) { c.Region = strings.Repeat("r", 64) }, "region", "64 bytes, at most 63"},
		{func(c *site.Config) { c.DataDir = "" }, "data", "empty, must be a directory of the site's own"},
		{func(c *site.Config) { c.Members = []string{"eu", "as"} }, "members", `this site, "us", is not among them`},
		{func(c *site.Config) { c.Members = []string{"us", "eu", "us"} }, "members[2]", `"us" stands there twice`},
		{func(c *site.Config) { c.Members = []string{"us", "e u"} }, "members[1]", "' ' at position 2, allowed are lower-case letters, digits and '-'"},
		{func(c *site.Config) { c.Members = slices.Repeat([]string{"us"}, 65) }, "members", "65 sites, at most 64"},
		{func(c *site.Config) { c.GRPC = "7001" }, "grpc", "must be host:port"},
		{func(c *site.Config) { c.GRPC = ":7001" }, "grpc", "must be host:port"},
		{func(c *site.Config) { c.HTTP = "127.0.0.1:65536" }, "http", "port must be 0 to 65535"},
		{func(c *site.Config) { c.HTTP = "" }, "http", "must be host:port"},
		{func(c *site.Config) { c.Gossip.Bind = "localhost:1" }, "bind", "must be IP:port, with an IP address and no host name"},
		{func(c *site.Config) { c.Gossip.Join = []string{"nowhere"} }, "join[0]", "must be host:port"},
		{func(c *site.Config) { c.Preset = "moon" }, "preset", `"moon", must be local, lan or wan`},
		{func(c *site.Config) { c.GRPC = "10.0.0.1:7001" }, "grpc", "10.0.0.1:7001 can be reached from other machines: that needs certificates and an access file, or to be forced with --insecure"},
		{func(c *site.Config) { c.HTTP = "[::]:7001" }, "http", "[::]:7001 can be reached from other machines: that needs certificates and an access file, or to be forced with --insecure"},
		{func(c *site.Config) { c.Gossip.Bind = "0.0.0.0:7201" }, "gossip", "0.0.0.0:7201 can be reached from other machines: that needs a key of gossip, or to be forced with --insecure"},
		{func(c *site.Config) { c.Restricted = true }, "access-file", "needs certificates: app managers prove by theirs who they are"},
		{func(c *site.Config) { c.Protocol = "paxos" }, "protocol", `"paxos", must be one of `},
		{func(c *site.Config) { c.Policy = "fair" }, "policy", `"fair", must be one of `},
		{func(c *site.Config) { c.Offer = "none" }, "offer", `"none", must be one of `},
		{func(c *site.Config) { c.Trigger = "never" }, "trigger", `"never", must be one of `},
		{func(c *site.Config) { c.Forecast = "oracle" }, "forecast", `"oracle", must be one of `},
		{func(c *site.Config) { c.Admission = "bribe" }, "admission", `"bribe", must be one of `},
		{func(c *site.Config) { c.ForecastBin = time.Millisecond }, "forecast-bin", "1ms, must be whole milliseconds from 1s to 1h"},
		{func(c *site.Config) { c.ForecastBin = 2 * time.Hour }, "forecast-bin", "2h0m0s, must be whole"},
		{func(c *site.Config) { c.ForecastBin = time.Second + 1 }, "forecast-bin", "1.000000001s, must be whole"},
		{func(c *site.Config) { c.ForecastHorizon = 289 }, "forecast-horizon", "289, must be within 0 (the default) and 288 bins"},
		{func(c *site.Config) { c.ForecastHorizon = -1 }, "forecast-horizon", "-1, must be within 0"},
		{func(c *site.Config) { c.RequestRetention = time.Millisecond }, "request-retention", "1ms, at least 1s"},
		{func(c *site.Config) { c.RequestRetention = -time.Hour }, "request-retention", "-1h0m0s, at least 1s"},
		{func(c *site.Config) { c.ClockSkew = -1 }, "clock-skew", "-1ns, must be less than the request retention"},
		{func(c *site.Config) { c.ClockSkew = 5 * time.Minute }, "clock-skew", "5m0s, must be less than the request retention"},
		{
			func(c *site.Config) { c.RequestRetention, c.ClockSkew = time.Minute, time.Minute },
			"clock-skew", "1m0s, must be less than the request retention",
		},
		{func(c *site.Config) { c.CollectTime = -1 }, "collect-time", "-1ns, must be from 1ms to 1m"},
		{func(c *site.Config) { c.TakeoverTime = time.Hour }, "takeover-time", "1h0m0s, must be from 1ms to 1m"},
		{func(c *site.Config) { c.CollectTime = time.Second }, "takeover-time", "1.5s, must be at least three times the collect-time of 1s"},
		{func(c *site.Config) { c.Preset, c.CollectTime = "lan", 200*time.Millisecond }, "takeover-time", "500ms, must be"},
		{func(c *site.Config) { c.MaxConns = -1 }, "max-conns", "-1, at least 0 (the default)"},
		{func(c *site.Config) { c.CheckpointBytes = 4095 }, "checkpoint-bytes", "4095, must be from 4096 to 17179869184"},
		{func(c *site.Config) { c.BackupLog = 4095 }, "backup-log", "4095, must be from 4096 to 201326592"},
		{func(c *site.Config) { c.CheckpointBytes, c.BackupLog = 8192, 24577 }, "backup-log", "24577, must be from 4096 to 24576"},
		{func(c *site.Config) { c.BackupTime = time.Millisecond }, "backup-time", "1ms, must be from 1s to 24h"},
		{func(c *site.Config) { c.BackupTime = 25 * time.Hour }, "backup-time", "25h0m0s, must be from 1s to 24h"},
		{func(c *site.Config) { c.CheckpointBytes = 1 << 40 }, "checkpoint-bytes", "1099511627776, must be from 4096 to 17179869184"},
		{func(c *site.Config) { c.CheckpointInterval = time.Millisecond }, "checkpoint-interval", "1ms, must be from 100ms to 1h"},
		{func(c *site.Config) { c.CheckpointInterval = 2 * time.Hour }, "checkpoint-interval", "2h0m0s, must be from 100ms to 1h"},
		{func(c *site.Config) { c.MaxRequests = -1 }, "max-requests", "-1, at least 0 (the default)"},
		{func(c *site.Config) { c.TenantSegments = -1 }, "tenant-segments", "-1, from 1 to 128, or 0 (the default)"},
		{func(c *site.Config) { c.TenantSegments = 129 }, "tenant-segments", "129, from 1 to 128, or 0 (the default)"},
		{func(c *site.Config) { c.Partitions = -1 }, "partitions", "-1, want 0 (the default) to 64"},
		{func(c *site.Config) { c.Partitions = 65 }, "partitions", "65, want 0 (the default) to 64"},
	} {
		t.Run(c.field+" "+c.problem, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			cfg := goodConfig(dir)
			c.spoil(&cfg)
			s, err := site.New(cfg)
			if err == nil {
				_ = s.Close()
				t.Fatal("taken")
			}
			bad, ok := errors.AsType[*name.Error](err)
			if !ok || bad.Field != c.field || !strings.HasPrefix(bad.Problem, c.problem) {
				t.Errorf("got %v, want %s: %s", err, c.field, c.problem)
			}
			if n := strings.Count(err.Error(), "\n"); n != 0 {
				t.Errorf("%d faults are told of one: %v", n+1, err)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the data directory was touched: %v", err)
			}
		})
	}
}

// TestConfigTakesItsBounds: the least and the most of each setting are taken.
func TestConfigTakesItsBounds(t *testing.T) {
	least, most := goodConfig(t.TempDir()), goodConfig(t.TempDir())
	least.ForecastBin, most.ForecastBin = time.Second, time.Hour
	most.ForecastHorizon = 288
	least.RequestRetention, least.ClockSkew = time.Second, time.Second-1
	least.CheckpointBytes, most.CheckpointBytes = 4<<10, 16<<30
	least.CheckpointInterval, most.CheckpointInterval = 100*time.Millisecond, time.Hour
	least.TenantSegments, most.TenantSegments = 1, 128
	least.Partitions, most.Partitions = 1, 64
	least.MaxConns, least.MaxRequests = 1, 1
	least.CollectTime, most.CollectTime, most.TakeoverTime = time.Millisecond, 20*time.Second, time.Minute
	most.Members = []string{"us"}
	for i := range 63 {
		most.Members = append(most.Members, fmt.Sprint("s", i))
	}
	for i := range 100 {
		most.MetricsEntities = append(most.MetricsEntities, fmt.Sprint("e", i))
	}
	for _, c := range []site.Config{least, most} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestConfigTellsAllFaults: a start reports all faults of its settings at once.
func TestConfigTellsAllFaults(t *testing.T) {
	cfg := site.Config{Members: []string{"", "x/y"}, Policy: "fair", MaxRequests: -1}
	text := cfg.Validate().Error()
	for _, field := range []string{
		"cluster", "name", "region", "data", "members[0]", "members[1]", "grpc", "http", "gossip", "policy", "max-requests",
	} {
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, field+": ") }) {
			t.Errorf("no word of %s in\n%s", field, text)
		}
	}
}

func TestEveryModuleIsTaken(t *testing.T) {
	cfg := goodConfig(t.TempDir())
	for _, m := range cfg.Modules() {
		if len(m.Known) == 0 {
			t.Errorf("%s: none known", m.Name)
		}
		for _, n := range m.Known {
			*m.Choice = n
			if err := cfg.Validate(); err != nil {
				t.Errorf("%s %q: %v", m.Name, n, err)
			}
		}
	}
}

// TestNewDataNeedsMembers: a site that was not told its members leaves nothing behind. An
// old directory needs no members.
func TestNewDataNeedsMembers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cfg := goodConfig(dir)
	members := cfg.Members
	cfg.Members = nil
	if _, err := site.New(cfg); !errors.Is(err, store.ErrNoMembers) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
	for _, given := range [][]string{members, nil, {"as", "eu", "us"}} {
		cfg.Members = given
		s, err := site.New(cfg)
		if err != nil {
			t.Fatalf("members %v: %v", given, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDataBelongsToOneSite: a site refuses a directory that is another site's, is in use,
// or was begun with other members.
func TestDataBelongsToOneSite(t *testing.T) {
	cfg := goodConfig(t.TempDir())
	first, err := site.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := site.New(cfg); !errors.Is(err, store.ErrInUse) {
		t.Errorf("a directory in use: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		title string
		spoil func(*site.Config)
		want  error
	}{
		{"another site", func(c *site.Config) { c.Name = "eu" }, store.ErrForeign},
		{"another cluster", func(c *site.Config) { c.Cluster = "other" }, store.ErrForeign},
		{"other members", func(c *site.Config) { c.Members = []string{"us", "eu"} }, store.ErrMembers},
	} {
		other := cfg
		c.spoil(&other)
		if _, err := site.New(other); !errors.Is(err, c.want) || !strings.Contains(err.Error(), cfg.DataDir) {
			t.Errorf("%s: %v", c.title, err)
		}
	}
}

// TestBusyAddress: a start names an address in use, and lets go of everything that it had
// opened by then.
func TestBusyAddress(t *testing.T) {
	cfg := goodConfig(t.TempDir())
	first, err := site.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	second := goodConfig(t.TempDir())
	second.HTTP = first.HTTPAddr()
	if _, err := site.New(second); err == nil || !strings.Contains(err.Error(), first.HTTPAddr()) {
		t.Errorf("got %v", err)
	}
	second.HTTP = "127.0.0.1:0"
	again, err := site.New(second)
	if err != nil {
		t.Fatalf("the directory is still held: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
