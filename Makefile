# All that a contributor runs. `make help` lists the targets; a fresh machine
# needs Go, git and make, and a C compiler for `make race` alone.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules

GO ?= go
# What the tests and benchmarks run over, e.g. `make test PKGS=./avantan/...`.
EVERYTHING := ./... ./lab/...
PKGS ?= $(EVERYTHING)
# Handed to `samya demo`, e.g. `make demo DEMO_FLAGS="--duration 30s --json"`.
DEMO_FLAGS ?=
# Handed to `go test`, e.g. `make test TEST_FLAGS="-run TestBooks -v"`.
TEST_FLAGS ?=
BENCH ?= .
BENCH_FLAGS ?= -benchtime 2s
FUZZTIME ?= 10s
# Seconds after which `make fuzz` and `make chaos-briefly` begin nothing further,
# and the number that draws the order of a budgeted run.
FUZZ_BUDGET ?=
CHAOS_BUDGET ?= 120
DRAW ?= 1
FUZZ_DIRS := appmgr avantan cmd devcluster doctor internal kvpart lab predict redistribute site
# What `make sim` runs; SIM_FLAGS is handed to `samya-lab sim`.
SEEDS ?= 2000
MODES ?= majority star auto switch
SIM_FLAGS ?=
OLD ?=
NEW ?=

BIN := $(CURDIR)/bin

# The product is pure Go.
export CGO_ENABLED = 0

# A package is compiled once for commands with these flags, and again for commands without:
# all have them. Without data for debuggers a build takes a tenth less; stack traces,
# profiles and names of functions stay. `dlv` builds with flags of its own.
COMPILE := -trimpath -gcflags=all=-dwarf=false -ldflags=-w
export GOFLAGS := $(COMPILE) $(filter-out $(COMPILE),$(GOFLAGS))

# The laboratory is a module of its own. What runs over both modules needs this.
BOTH := GOWORK=$(CURDIR)/lab/go.work

##@ Product

.PHONY: build
build: ## Build bin/samya; the laboratory is bin/samya-lab, which the targets that use it build
	@test -e bin/samya || echo "building bin/samya (a minute or two, the first time)"
	@GOWORK=off $(GO) build -v -o bin/samya ./cmd/samya 2>&1 | $(count)

# The go command knows itself whether there is anything to do.
.PHONY: bin/samya-lab
bin/samya-lab:
	$(GO) build -C lab -o $(BIN)/ ./cmd/samya-lab

# Without inlining the first build takes a fifth to a third less, and the program is slower.
# Only the demo's is built so, `samya version` says it, and `make build` replaces it.
.PHONY: demo
demo: ## Run five sites under load on this machine; DEMO_FLAGS="--duration 30s"
	@test -e bin/samya || echo "building bin/samya (a minute or two, the first time)"
	@GOWORK=off $(GO) build '-gcflags=all=-dwarf=false -l' -v -o bin/samya ./cmd/samya 2>&1 | $(count)
	bin/samya demo $(DEMO_FLAGS)

##@ Tests

PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
# A package more than processors: some package always waits for a timer or a process.
TEST_PACKAGES := -p $(shell echo $$(($(PROCESSORS) + 1)))

# The packages that take longest begin first, beside all others: most wait more than
# they work.
FIRST := $(if $(subst $(EVERYTHING),,$(PKGS)),,./lab/failuretest ./lab/sim ./cmd/samya ./site)

.PHONY: test
test: bin/grpcurl ## Vet, and run the tests: units, clusters in one process and of real processes, briefly fuzzed decoders
	$(BOTH) $(GO) vet $(PKGS)
	$(BOTH) $(GO) test -vet=off $(TEST_PACKAGES) -timeout 20m $(TEST_FLAGS) $(FIRST) $(PKGS)

# The real processes of the tests write to the disk of the work tree: /tmp is
# often in memory. One test alone: TEST_FLAGS="-run TestChaos"; what a seed drew
# once: SAMYA_TEST_SEED=seed.
.PHONY: chaos
chaos: ## The failure tests at length, on real processes: kills, pauses, failing disks, partitions, memory
	mkdir -p bin/process
	SAMYA_TEST_PROCESS=long TMPDIR=$(BIN)/process $(BOTH) $(GO) test -count=1 -timeout 40m -v $(TEST_FLAGS) ./lab/failuretest

# The tests that draw their faults, in an order drawn by DRAW and with fresh seeds.
CHAOS_TESTS := TestChaos TestRetries TestKillAtAnyWriteOrSync TestDiskErrorsAtAnyCall TestKillUnderLoad TestHistoriesOfOneSiteAreLinearizable TestMembersChange TestAMajorityIsLost

.PHONY: chaos-briefly
chaos-briefly: ## The short forms of the failure tests that draw their faults, again with other seeds, for CHAOS_BUDGET seconds
	mkdir -p bin/process; $(BOTH) $(GO) test -c -o bin/process/failuretest.test ./lab/failuretest; \
	began=$$SECONDS; n=0; \
	for test in $$(shuf --random-source=<(yes $(DRAW)) -e $(CHAOS_TESTS)); do \
	  if [ $$n -gt 0 ] && [ $$((SECONDS - began)) -ge $(CHAOS_BUDGET) ]; then break; fi; \
	  (cd lab/failuretest && TMPDIR=$(BIN)/process $(BIN)/process/failuretest.test -test.run "^$$test\$$" -test.timeout 10m -test.v | grep -E '^( *--- |FAIL|ok|PASS| +[a-z_]+_test.go)'); \
	  n=$$((n + 1)); \
	done; \
	echo "chaos: $$n of $(words $(CHAOS_TESTS)) tests, $$((SECONDS - began)) s, none failed"

.PHONY: clients
clients: ## Build and test the clients for TypeScript and Python; they need node 20 with npm, and python3
	cd clients/typescript && npm ci --no-audit --no-fund --loglevel=error && npm test --silent
	cd clients/python && python3 -W error::ResourceWarning -m unittest discover -t . -s tests

CONSOLE := appmgr/console/web

.PHONY: console
console: ## Bundle the pages of the web console into appmgr/console/assets; takes node 20 with npm
	cd $(CONSOLE) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent check && npm run --silent build

.PHONY: console-check
console-check: ## Test the units of the console, and see that its committed files are what the sources make
	cd $(CONSOLE) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent check && npm test --silent
	rm -rf bin/console-assets && cd $(CONSOLE) && node build.mjs $(BIN)/console-assets
	diff -r bin/console-assets appmgr/console/assets || { echo "run make console and commit appmgr/console/assets"; exit 1; }

.PHONY: console-test
console-test: console-check ## Drive the console with Chromium against five sites under load; pictures of all pages in bin/console
	mkdir -p bin/process bin/console
	SAMYA_CONSOLE_SHOTS=$(BIN)/console TMPDIR=$(BIN)/process $(BOTH) $(GO) test -count=1 -timeout 10m -v $(TEST_FLAGS) ./lab/consoletest

# The clients that are tried, and the only row; empty for all rows.
CONFORMANCE ?= Go,TypeScript,Python,Python asyncio
CONFORMANCE_ROW ?=

.PHONY: conformance
conformance: clients ## Hold the clients of all languages to the same promises, against real processes that are killed
	mkdir -p bin/process
	SAMYA_CONFORMANCE='$(CONFORMANCE)' SAMYA_CONFORMANCE_ROW='$(CONFORMANCE_ROW)' TMPDIR=$(BIN)/process $(BOTH) $(GO) test -count=1 -timeout 10m -v $(TEST_FLAGS) -run 'TestConformance$$' ./lab/conformance

.PHONY: retries
retries: ## Of those the one in which 100 clients retry through failing sites and app managers
	mkdir -p bin/process
	SAMYA_TEST_PROCESS=long TMPDIR=$(BIN)/process $(BOTH) $(GO) test -count=1 -timeout 10m -v $(TEST_FLAGS) -run 'TestRetries$$' ./lab/failuretest

# How long `make memory` makes 50,000 requests a second, e.g. RATED=1h; not at all if empty.
RATED ?=

.PHONY: memory
memory: ## And the ones that measure the memory of many requests, and restarts with them; RATED=1h for 50,000 requests a second
	mkdir -p bin/process
	SAMYA_TEST_PROCESS=long SAMYA_TEST_RATED=$(RATED) TMPDIR=$(BIN)/process $(BOTH) $(GO) test -count=1 -timeout 3h -v $(TEST_FLAGS) -run 'TestRestartWithManyRequests|TestDefaultsBearTheRate' ./lab/failuretest

.PHONY: members
members: ## And the one in which the members change: 3, 5, 7, 5 sites, each replaced, one lost, with kills
	mkdir -p bin/process
	SAMYA_TEST_PROCESS=long TMPDIR=$(BIN)/process $(BOTH) $(GO) test -count=1 -timeout 30m -v $(TEST_FLAGS) -run 'TestMembersChange$$' ./lab/failuretest

# Takes 25 minutes, and etcd from PATH.
.PHONY: nodes
nodes: ## And the one in which the nodes of a site whose log is in etcd fail: 300 kills at calls to etcd, pauses, partitions
	mkdir -p bin/process
	SAMYA_TEST_PROCESS=long TMPDIR=$(BIN)/process $(BOTH) $(GO) test -count=1 -timeout 30m -v $(TEST_FLAGS) -run 'TestNodes$$' ./lab/failuretest

# Each mode of the protocol; on a violation the seed and how to replay it are told.
.PHONY: sim
sim: bin/samya-lab ## Simulate whole clusters under faults: SEEDS of each mode, or MODES=star; SIM_FLAGS="--budget 1m"
	for mode in $(MODES); do bin/samya-lab sim --seeds $(SEEDS) --protocol $$mode $(SIM_FLAGS); done

# The first seed of the nodes, and how many.
NODES_FIRST ?= 1
NODES_SEEDS ?= 20000

.PHONY: sim-nodes
sim-nodes: ## Simulate the nodes of a site over a store: NODES_SEEDS from NODES_FIRST on
	$(GO) test ./site/replica -count=1 -timeout 60m -run 'TestNodes$$' -nodes.first $(NODES_FIRST) -nodes.seeds $(NODES_SEEDS)

# Handed to `samya-lab explore`, e.g. `make explore EXPLORE_FLAGS="--protocol star --bound large"`.
EXPLORE_FLAGS ?=

.PHONY: scenarios
scenarios: bin/samya-lab ## Play named failures: expected and actual outcome
	bin/samya-lab scenarios

.PHONY: explore
explore: bin/samya-lab ## Search all schedules of three sites to closure, all variants; EXPLORE_FLAGS="--bound small"
	bin/samya-lab explore $(EXPLORE_FLAGS)

# Seconds for each of the searches.
EXPLORE_BUDGET ?= 300

.PHONY: explore-members
explore-members: bin/samya-lab ## Search sites that leave or are lost within larger bounds, EXPLORE_BUDGET seconds for each
	for bounds in 'majority --bound drain --ballots 2' 'majority --bound drain --leaders 2' 'majority --bound drain --instances 2' \
	  'star --bound drain --leaders 2 --crashes 0' 'majority --bound loss --ballots 2' 'star --bound loss --ballots 2 --crashes 0' 'star --bound loss --leaders 2 --crashes 0 --acquires 0' \
	  'transfer --bound loss --leaders 2 --ballots 2'; do \
	  bin/samya-lab explore --budget $(EXPLORE_BUDGET)s --max-states 0 --protocol $$bounds; \
	done

# Handed to `samya-lab mutants`, e.g. `make mutants MUTANTS_FLAGS="--seeds 50 --json"`.
MUTANTS_FLAGS ?=

.PHONY: golden
golden: ## Keep messages and directories of this build's version as test data, once, before its release
	$(GO) test ./site/wire -run TestGoldenMessages -update
	$(GO) test ./site/core -run TestGoldenTexts -update
	$(BOTH) $(GO) test ./lab/sim -run TestGoldenDirectories -update
	$(GO) test ./site/store -run TestGoldenFull -update

.PHONY: mutants
mutants: bin/samya-lab ## Seed known bugs, and see that the simulator, the search or a test catches each
	bin/samya-lab mutants $(MUTANTS_FLAGS)

# Verdicts are kept by the source that they are about, in bin/mutants/verdicts.
.PHONY: mutants-all
mutants-all: bin/samya-lab ## The same, all bugs, at low priority: goes on where it stopped, and tells bin/mutants/log (an hour or two)
	mkdir -p bin/mutants
	nice -n 15 bin/samya-lab mutants --timeout 1h --resume bin/mutants/verdicts $(MUTANTS_FLAGS) 2>bin/mutants/log | tee bin/mutants/result

# How long each strategy is judged on each backend in memory.
KV_STRESS ?= 2m

.PHONY: kv-stress
kv-stress: ## Judge the partitioned store under 8 clients and the race detector, KV_STRESS for each strategy and backend
	SAMYA_KV_STRESS=$(KV_STRESS) CGO_ENABLED=1 $(BOTH) $(GO) test -race -count=1 -timeout 2h -v -run 'TestOracleAtLength$$' $(TEST_FLAGS) ./lab/kvoracle

# How long each mode of early scheduling is judged, in seconds.
EARLY_SECONDS ?= 90

.PHONY: early-stress
early-stress: ## Judge each mode of early scheduling under the race detector, EARLY_SECONDS each
	EARLY_SECONDS=$(EARLY_SECONDS) CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 4h -v -run 'TestOrder$$' $(TEST_FLAGS) ./kvpart/early

# How many random requests each mode of early scheduling runs while it is watched.
EARLY_REQUESTS ?= 1000000

.PHONY: early-watch
early-watch: ## Watch that random requests of keys, several keys and ranges end in each mode of early scheduling
	EARLY_REQUESTS=$(EARLY_REQUESTS) $(GO) test -count=1 -timeout 1h -v -run 'TestNobodyWaitsForEver$$' $(TEST_FLAGS) ./kvpart/sched

.PHONY: early-search
early-search: ## Search every order of 3 threads and 4 requests in each mode of early scheduling (an hour)
	EARLY_SEARCH=1 $(GO) test -count=1 -timeout 4h -v -run 'TestEveryOrder$$' $(TEST_FLAGS) ./kvpart/early

# Real series lie beside the project; a folder of your own does as well.
FORECAST_DATA ?= ../shared/data
# cheap, all (with lstm: minutes more) or names separated by commas.
FORECAST_MODELS ?= cheap

.PHONY: forecasts
forecasts: bin/samya-lab ## Judge all forecasting models on all series; FORECAST_MODELS=all for lstm as well
	mkdir -p bin/traces
	bin/samya-lab trace azure-like >bin/traces/azure-like.csv
	bin/samya-lab trace near-periodic >bin/traces/near-periodic.csv
	bin/samya-lab predict --column net --models $(FORECAST_MODELS) --series bin/traces/azure-like.csv,bin/traces/near-periodic.csv
	for file in $$(find $(FORECAST_DATA) -name 'nab_*.csv' | sort); do \
	  bin/samya-lab predict --models $(FORECAST_MODELS) --series $$file; \
	done

# Handed to `samya-lab replay`, e.g. `make replay REPLAY_FLAGS="--workload fit --seeds 3"`.
REPLAY_FLAGS ?=

.PHONY: replay
replay: bin/samya-lab ## Play an hour of demand from five regions under each setting; REPLAY_FLAGS="--workload fit"
	bin/samya-lab replay $(REPLAY_FLAGS)

# Handed to `samya-lab replay` by policies, e.g. `make policies POLICIES_FLAGS="--first 11 --seeds 5"`.
POLICIES_FLAGS ?=

.PHONY: policies
policies: bin/samya-lab ## Hold the default policies against their goals: waits, redistributions, latency
	bin/samya-lab replay --goals-of default $(POLICIES_FLAGS)

# Handed to `samya-lab experiment`, e.g. `make experiments EXPERIMENT_FLAGS="--quick"`.
EXPERIMENT_FLAGS ?=

.PHONY: repartitioning
repartitioning: bin/samya-lab ## Rerun the papers' comparison of repartitioning, and measure the pause at a switch
	bin/samya-lab experiment repartitioning --out bin/experiments/repartitioning $(EXPERIMENT_FLAGS)
	bin/samya-lab experiment pause --out bin/experiments/pause $(EXPERIMENT_FLAGS)

.PHONY: early
early: bin/samya-lab ## Rerun the experiments of the paper on early scheduling, on this machine and in virtual time
	bin/samya-lab experiment early --out bin/experiments/early $(EXPERIMENT_FLAGS)

.PHONY: libra
libra: bin/samya-lab ## Rerun the experiments of the paper on balancing processor and disk, in virtual time
	bin/samya-lab experiment libra --out bin/experiments/libra $(EXPERIMENT_FLAGS)

# What `make experiments` runs: samya for all, or one of its names.
EXPERIMENT ?= samya

.PHONY: experiments
experiments: bin/samya-lab ## Rerun the Samya paper's experiments in virtual time; EXPERIMENT=crash, EXPERIMENT_FLAGS="--quick"
	bin/samya-lab experiment $(EXPERIMENT) --out bin/experiments/$(EXPERIMENT) $(EXPERIMENT_FLAGS)

.PHONY: experiments-docs
experiments-docs: bin/samya-lab ## The same, all of them, into docs/papers/experiments
	bin/samya-lab experiment samya --out docs/papers/experiments $(EXPERIMENT_FLAGS)

# Handed to `samya-lab hierarchy`, e.g. `make hierarchy HIERARCHY_FLAGS="--quick --goals"`.
HIERARCHY_FLAGS ?= --goals

.PHONY: hierarchy
hierarchy: bin/samya-lab ## Measure what partitions learn of a hierarchy, with a root split and without, on this disk
	mkdir -p bin/experiments/hierarchy
	bin/samya-lab hierarchy --dir bin/experiments/hierarchy --out bin/experiments/hierarchy $(HIERARCHY_FLAGS)

# Handed to `samya-lab partition --suite`, e.g. `make partition PARTITION_FLAGS="--families ring,tree --seeds 1"`.
PARTITION_FLAGS ?=

.PHONY: partition
partition: bin/samya-lab ## Hold the graph partitioner against gpmetis (Debian package metis) on graphs of all families
	bin/samya-lab partition --suite $(PARTITION_FLAGS)

# The packages for the race detector: PKGS, or all packages with a second goroutine.
# Tests that step machines by the hundred, each in one goroutine, skip themselves
# (internal/race).
RACE_PKGS = $(PKGS)
ifeq ($(PKGS),$(EVERYTHING))
RACE_PKGS = $$($(BOTH) $(GO) list $(PKGS) | grep -vxF "$$(sed "s|^|$$(GOWORK=off $(GO) list -m)/|" internal/race/alone.txt)" | \
  awk -v part=$(RACE_PART) 'part == "" || n++ % 3 == part')
endif

.PHONY: race
race: ## The same tests under the race detector; needs a C compiler. RACE_PART=0, 1 or 2 takes a third of the packages
	CGO_ENABLED=1 $(BOTH) $(GO) test -race -vet=off $(TEST_PACKAGES) -timeout 20m $(TEST_FLAGS) $(RACE_PKGS)

# Each target in turn: the go command fuzzes one at a time. It would make what it
# finds smaller for most of the time. With FUZZ_BUDGET, in seconds, targets come in
# an order drawn by DRAW, and none begins once the budget is spent.
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME, a time or a number of inputs as 2000x; FUZZ_BUDGET=120 stops after 120 s
	all=$$(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(FUZZ_DIRS) | grep -v '^internal/testfuzz/' | sed 's/:func /:/' | sort); \
	of=$$(wc -l <<<"$$all"); n=0; began=$$SECONDS; \
	if [ -n "$(FUZZ_BUDGET)" ]; then all=$$(shuf --random-source=<(yes $(DRAW)) <<<"$$all"); fi; \
	while IFS=: read -r file target; do \
	  if [ -n "$(FUZZ_BUDGET)" ] && [ $$n -gt 0 ] && [ $$((SECONDS - began)) -ge $(FUZZ_BUDGET) ]; then break; fi; \
	  n=$$((n + 1)); \
	  if ! said=$$($(BOTH) $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "./$$(dirname "$$file")" 2>&1); then \
	    echo "$$said"; echo "FAIL $$target in $$(dirname "$$file")"; exit 1; \
	  fi; \
	  echo "fuzz $$n/$$of: $$target in $$(dirname "$$file"), $$(grep -oE 'execs: [0-9]+' <<<"$$said" | tail -1)"; \
	done <<<"$$all"; \
	echo "fuzz: $$n of $$of targets for $(FUZZTIME) each, $$((SECONDS - began)) s, none failed"

# The file system under test is that of the work tree: /tmp is often in memory,
# where a sync costs nothing.
.PHONY: bench
bench: ## Run the benchmarks on this disk; BENCH=regexp, BENCH_FLAGS, PKGS
	mkdir -p bin/bench
	GOGC=100 TMPDIR=$(BIN)/bench $(BOTH) $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(BENCH_FLAGS) $(PKGS)

# Handed to `samya-lab compare`, e.g. `make compare COMPARE_FLAGS="--quick --peers redis"`.
COMPARE_FLAGS ?=

.PHONY: compare
compare: build bin/samya-lab ## Measure samya beside redis, etcd and PostgreSQL, on this disk; COMPARE_FLAGS="--quick --goals"
	mkdir -p bin/compare
	bin/samya-lab compare --dir bin/compare --markdown bin/compare/tables.md --svg bin/compare/chart.svg $(COMPARE_FLAGS)

.PHONY: compare-docs
compare-docs: build bin/samya-lab ## The same, into docs/performance.md
	mkdir -p bin/compare
	bin/samya-lab compare --dir bin/compare --markdown docs/performance.md --svg docs/performance.svg $(COMPARE_FLAGS)

.PHONY: soak
soak: build bin/samya-lab ## Make load on a site for five minutes, and see that its memory stays
	mkdir -p bin/compare
	bin/samya-lab compare --dir bin/compare --soak 5m

# Handed to `samya-lab rates`, e.g. `make rates RATES_FLAGS="--duration 1m --peer=false"`.
RATES_FLAGS ?=

.PHONY: rates
rates: build bin/samya-lab bin/ratelimit ## Measure rate quotas of five sites, 60 ms apart, and envoyproxy/ratelimit; RATES_FLAGS="--duration 1m" (20 minutes)
	mkdir -p bin/compare
	bin/samya-lab rates --dir bin/compare $(RATES_FLAGS)

# Handed to `samya-lab rls`, e.g. `make rls RLS_FLAGS="--rounds 3 --goals"`.
RLS_FLAGS ?=

.PHONY: rls
rls: build bin/samya-lab bin/ratelimit bin/gubernator ## Measure decisions of Envoy's rate limit service beside envoyproxy/ratelimit, Gubernator and bare gRPC
	mkdir -p bin/compare
	bin/samya-lab rls --dir bin/compare --gubernator bin/gubernator $(RLS_FLAGS)

# Handed to `samya-lab cores`, e.g. `make cores CORES_FLAGS="--rough"`.
CORES_FLAGS ?=

.PHONY: cores
cores: build bin/samya-lab ## Tell by a model what more cores bring a site, with costs measured here, beside real sites (3 minutes)
	bin/samya-lab cores $(CORES_FLAGS)

# Handed to `samya-lab transports`, e.g. `make transports TRANSPORTS_FLAGS="--rounds 9"`.
TRANSPORTS_FLAGS ?=

.PHONY: transports
transports: bin/samya-lab ## Measure ways to carry the stream of operations: gRPC, drpc and frames (3 minutes)
	bin/samya-lab transports $(TRANSPORTS_FLAGS)

.PHONY: bench-compare
bench-compare: bin/benchstat ## Compare two outputs of `make bench`: OLD=file NEW=file
	bin/benchstat $(OLD) $(NEW)

# Handed to `samya-lab kv`, e.g. `make kv-bench KV_FLAGS="--rounds 9 --json"`.
KV_FLAGS ?=

.PHONY: kv-bench
kv-bench: bin/samya-lab ## Measure what an operation on the partitioned store costs, and hold it against its bounds
	bin/samya-lab kv --bench $(KV_FLAGS)

.PHONY: kv-cost
kv-cost: bin/samya-lab ## Measure what repartitioning costs where it cannot help, and that its share is bounded
	bin/samya-lab kv --cost $(KV_FLAGS)

##@ Release

# Handed to what builds releases, e.g. `make release RELEASE_FLAGS="-platforms linux/amd64 -modified"`.
RELEASE_FLAGS ?=

.PHONY: release
release: bin/release ## Build what users download into dist/: archives, images, SBOMs, checksums, of what is committed
	bin/release $(RELEASE_FLAGS) -out dist build

.PHONY: image
image: bin/release ## Build the container images for linux/amd64 and linux/arm64 into dist/, also of what is not committed
	bin/release -modified -platforms linux/amd64,linux/arm64 $(RELEASE_FLAGS) -out dist image

# Of one platform: what is compiled is the same way for all.
.PHONY: release-check
release-check: bin/release ## Build a release for linux/amd64 twice, in unlike surroundings, and compare the bytes
	bin/release -platforms linux/amd64 $(RELEASE_FLAGS) check

.PHONY: release-test
release-test: ## Test what builds releases; as root, run a site and an app manager from the image's root
	$(GO) vet -C tools/release ./...
	$(GO) test -C tools/release -timeout 20m ./...

##@ Code

.PHONY: lint
lint: bin/golangci-lint $(if $(subst $(EVERYTHING),,$(PKGS)),,house) ## Run the linters, and hold structure and words against their bounds; they also check the format
	GOGC=200 $(BOTH) bin/golangci-lint run $(PKGS)
ifeq ($(PKGS),$(EVERYTHING))
	for tool in release house docsite chart; do (cd tools/$$tool && GOGC=200 $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done
endif

# Handed to house, e.g. `make house HOUSE_FLAGS="-v"`.
HOUSE_FLAGS ?=

.PHONY: house
house: bin/house ## Measure the structure of the code, and hold it against its bounds; HOUSE_FLAGS="-v" names each place
	bin/house $(HOUSE_FLAGS)

.PHONY: house-test
house-test: ## Test the program house
	$(GO) vet -C tools/house ./...
	$(GO) test -C tools/house ./...

.PHONY: fmt
fmt: bin/gofumpt ## Format the hand-written code
	find . -name '*.go' -not -name '*.pb.go' -not -path './bin/*' -print0 | xargs -0 bin/gofumpt -l -w

# The messages that have encoders and decoders of their own.
FAST := proto/samya/v1/tokens.proto

.PHONY: generate
generate: bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc bin/protoc-gen-go-vtproto ## Lint the proto files and generate their code
	bin/buf lint
	PATH="$(BIN):$$PATH" bin/buf generate
	PATH="$(BIN):$$PATH" bin/buf generate --template buf.gen.fast.yaml --path $(FAST)

.PHONY: generate-check
generate-check: bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc bin/protoc-gen-go-vtproto ## Check that the committed generated code is what the proto files give
	bin/buf lint
	rm -rf bin/generated
	PATH="$(BIN):$$PATH" bin/buf generate --output bin/generated
	PATH="$(BIN):$$PATH" bin/buf generate --template buf.gen.fast.yaml --path $(FAST) --output bin/generated
	diff -r --exclude='*.proto' bin/generated/proto proto
	echo "generated code is up to date, byte for byte"

.PHONY: docs-generate
docs-generate: ## Write the pages of docs/ that the code tells; tests compare them
	mkdir -p bin
	$(GO) run ./cmd/samya config reference >bin/configuration.md
	mv bin/configuration.md docs/configuration.md

# The path of the site at its host, e.g. `make docs-site DOCS_BASE=/samya/`.
DOCS_BASE ?= /

# What npm has installed stays while its pins stay.
.PHONY: docs-site
docs-site: bin/docsite ## Build the documentation site into bin/docs-site; needs node 20 with npm
	bin/docsite -out bin/docs-src stage
	cd bin/docs-src && { cmp -s package-lock.json node_modules/.installed || \
	  { npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.installed; }; }
	cd bin/docs-src && DOCS_BASE=$(DOCS_BASE) node_modules/.bin/vitepress build --logLevel error

.PHONY: docs-check
docs-check: docs-site ## Build the documentation site; check its links, headings, titles, and that it asks no other host for anything
	GOWORK=off $(GO) vet -C tools/docsite ./...
	GOWORK=off $(GO) test -C tools/docsite ./...
	bin/docsite -site bin/docs-site -base $(DOCS_BASE) check

# Where docs-serve listens.
DOCS_ADDR ?= 127.0.0.1:8099

.PHONY: docs-serve
docs-serve: docs-site ## Build the documentation site and serve it at http://127.0.0.1:8099
	bin/docsite -site bin/docs-site -addr $(DOCS_ADDR) serve

# With what it builds the tests of terraform/ run in `make test` as well.
.PHONY: terraform-fmt
terraform-fmt: bin/tofu bin/standin ## Check the format of terraform/
	TF_CLI_CONFIG_FILE=/dev/null bin/tofu fmt -check -recursive terraform

.PHONY: terraform-check
terraform-check: terraform-fmt ## Check terraform/: format, every argument against the providers' schemas, tests, a cluster by apply and destroy
	$(GO) test -count=1 -timeout 15m $(TEST_FLAGS) ./terraform/... ./devcluster/local ./terraform/tfschema/... ./terraform/tfreference

# The packages whose bindings the schemas below terraform/schemas are read from.
GOOGLE_BINDINGS := @cdktf/provider-google@16.12.1
AWS_BINDINGS := @cdktf/provider-aws@21.22.1

.PHONY: terraform-schemas
terraform-schemas: ## Read anew what the clouds' providers take, for the resources that terraform/ uses; needs npm
	for provider in google aws; do \
	  package=$(GOOGLE_BINDINGS); [ $$provider = google ] || package=$(AWS_BINDINGS); \
	  rm -rf bin/npm/$$provider; mkdir -p bin/npm/$$provider; \
	  npm pack --silent --pack-destination bin/npm/$$provider $$package >/dev/null; \
	  tar -xzf bin/npm/$$provider/*.tgz -C bin/npm/$$provider; \
	  $(GO) run ./terraform/tfschema/extract -provider $$provider -package $$package \
	    -bindings bin/npm/$$provider/package -out terraform/schemas/$$provider.json; \
	done

.PHONY: terraform-docs
terraform-docs: ## Write terraform/reference.md out of the configurations
	$(GO) test -count=1 ./terraform -run 'TestReference$$' -update

# Handed to the tests of the chart, e.g. `make chart CHART_FLAGS=-update`.
CHART_FLAGS ?=

.PHONY: chart
chart: build ## Check the Helm chart and the Compose file: lint, schemas of Kubernetes, and what they start as processes
	$(GO) vet -C tools/chart .
	$(GO) test -C tools/chart -vet=off -count=1 -timeout 10m $(TEST_FLAGS) . $(CHART_FLAGS)

.PHONY: chart-apply
chart-apply: bin/kube-apiserver ## Apply the chart to a real kube-apiserver, twice; builds it first (minutes), and takes etcd from PATH
	SAMYA_KUBE_APISERVER=$(BIN)/kube-apiserver $(GO) test -C tools/chart -count=1 -timeout 10m -v $(TEST_FLAGS) -run 'TestApply$$' .

.PHONY: tidy-check
tidy-check: ## Check that go.mod and go.sum are tidy; prints the difference
	GOWORK=off $(GO) mod tidy -diff
	GOWORK=off $(GO) -C lab mod tidy -diff
	for tool in release house docsite chart; do $(GO) -C tools/$$tool mod tidy -diff; done

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# The tools are pinned in modules of their own, so that what they need never
# touches the product's go.mod. Each is built once, and again when its pin moves.

# Building the linters takes minutes the first time: count the packages aloud.
count := awk '/^go: downloading/ { if (++d % 50 == 0) { print "  " d " modules downloaded"; fflush() } next } \
              !/[ :]/ { if (++n % 200 == 0) { print "  " n " packages compiled"; fflush() } next } \
              { print; fflush() }'

bin/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	echo "building $@ (minutes, the first time)"
	$(GO) build -C tools/lint -v -o $(BIN)/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint 2>&1 | $(count)
	touch $@

bin/grpcurl: tools/grpcurl/go.mod tools/grpcurl/go.sum
	echo "building $@ (minutes, the first time)"
	$(GO) build -C tools/grpcurl -o $(BIN)/ github.com/fullstorydev/grpcurl/cmd/grpcurl
	touch $@

# The rate limiter that samya is measured beside.
bin/ratelimit: tools/ratelimit/go.mod tools/ratelimit/go.sum
	echo "building $@ (minutes, the first time)"
	$(GO) build -C tools/ratelimit -o $(BIN)/ratelimit github.com/envoyproxy/ratelimit/src/service_cmd
	touch $@

# And another, which keeps its limits in memory.
bin/gubernator: tools/gubernator/go.mod tools/gubernator/go.sum
	echo "building $@ (minutes, the first time)"
	$(GO) build -C tools/gubernator -o $(BIN)/gubernator github.com/gubernator-io/gubernator/v2/cmd/gubernator
	touch $@

# The go command knows itself whether there is anything to do.
.PHONY: bin/house
bin/house:
	$(GO) build -C tools/house -o $(BIN)/ .

# The go command knows itself whether there is anything to do.
.PHONY: bin/docsite
bin/docsite:
	GOWORK=off $(GO) build -C tools/docsite -o $(BIN)/ .

# The go command knows itself whether there is anything to do.
.PHONY: bin/release
bin/release:
	$(GO) build -C tools/release -o $(BIN)/ .

bin/gofumpt: tools/lint/go.mod tools/lint/go.sum
	echo "building $@"
	$(GO) build -C tools/lint -o $(BIN)/ mvdan.cc/gofumpt
	touch $@

bin/buf: tools/proto/go.mod tools/proto/go.sum
	echo "building $@"
	$(GO) build -C tools/proto -v -o $(BIN)/ github.com/bufbuild/buf/cmd/buf 2>&1 | $(count)
	touch $@

bin/protoc-gen-go: tools/proto/go.mod tools/proto/go.sum
	echo "building $@"
	$(GO) build -C tools/proto -o $(BIN)/ google.golang.org/protobuf/cmd/protoc-gen-go
	touch $@

bin/protoc-gen-go-grpc: tools/proto/go.mod tools/proto/go.sum
	echo "building $@"
	$(GO) build -C tools/proto -o $(BIN)/ google.golang.org/grpc/cmd/protoc-gen-go-grpc
	touch $@

bin/protoc-gen-go-vtproto: tools/proto/go.mod tools/proto/go.sum
	echo "building $@"
	$(GO) build -C tools/proto -o $(BIN)/ github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	touch $@

bin/benchstat: tools/bench/go.mod tools/bench/go.sum
	echo "building $@"
	$(GO) build -C tools/bench -o $(BIN)/ golang.org/x/perf/cmd/benchstat
	touch $@

# Not what its authors call a development build.
bin/tofu: tools/tofu/go.mod tools/tofu/go.sum
	echo "building $@ (minutes, the first time)"
	$(GO) build -C tools/tofu -v -ldflags '-s -w -X github.com/opentofu/opentofu/version.dev=no' -o $(BIN)/ \
	  github.com/opentofu/opentofu/cmd/tofu 2>&1 | $(count)
	touch $@

# Stands in for the clouds' providers, which cannot be had offline.
bin/standin: tools/standin/go.mod tools/standin/go.sum $(wildcard tools/standin/*.go)
	echo "building $@"
	$(GO) build -C tools/standin -o $(BIN)/ .
	touch $@

# Its version decides which of its abilities are on.
KUBERNETES := -X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1 \
  -X k8s.io/component-base/version.gitMinor=37

bin/kube-apiserver: tools/kubernetes/go.mod tools/kubernetes/go.sum
	echo "building $@ (minutes, the first time)"
	$(GO) build -C tools/kubernetes -v -p 2 -ldflags '-w $(KUBERNETES)' -o $(BIN)/ \
	  k8s.io/kubernetes/cmd/kube-apiserver 2>&1 | $(count)
	touch $@

# These say themselves what they do.
.SILENT: bin/kube-apiserver bin/tofu bin/standin bin/golangci-lint bin/grpcurl bin/ratelimit bin/gubernator bin/gofumpt bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc bin/protoc-gen-go-vtproto bin/benchstat generate-check fuzz help
