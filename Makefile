# leat: `make demo` shows it, `make test` tests it. The rest is below; `make` alone lists it.

GO ?= go
TOOL = $(GO) tool -modfile=$(CURDIR)/tools/go.mod
# The modules below the root with packages, and all modules.
NESTED = adapter/clientgo adapter/leatcache adapter/otel testserver/cluster scale/packed/zstd observe/livepage/browsertest bench e2e e2e/conformance tools tools/leat-fields
MODULES = . $(NESTED) e2e/servers
PLATFORMS = linux/arm,linux/arm64,darwin/arm64,windows/amd64

# How long make fuzz stays with each target, and of which packages.
FUZZTIME ?= 1m
FUZZPACKAGES ?= ./...

# How long make soak begins new rounds, and its other flags (-soak.seed=7 -soak.log -soak.profile=profiles).
SOAKTIME ?= 2m
SOAKFLAGS ?=

KUBERNETES := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2 }' e2e/servers/go.mod)
SERVERS = e2e/bin/etcd e2e/bin/kube-apiserver e2e/bin/kube-controller-manager e2e/bin/kubectl

.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-race explore test-cluster test-bench page-test conformance conformance-all conformance-projects bench bench-compare bench-quick bench-projects bench-real e2e soak model servers lint lint-format lint-vet lint-static lint-tidy vuln fuzz fuzz-quick mutate

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## an API server, a controller and the whole pipeline between them, in one process
	$(GO) run ./cmd/leat demo

# What make test tests: the pipeline in its order, and the packages that every program is made of. With a cold build cache
# on two cores, that takes five minutes. All packages take ten, most of it compilation.
CORE = ./api/... ./apiclient/... ./codec/... ./reflector ./deltafifo ./cache ./informer/... ./workqueue ./controller/... \
	./predicate ./cachedclient ./manager ./program ./testserver ./testkit

# make lint vets the code. Many tests wait more than they compute, so four packages at a time (-p 4) end sooner than two
# on two cores. go test prints a package when it and those before it have ended.
test: ## the tests of the pipeline, and of what every program is made of; five minutes with a cold build cache
	@echo "compiling and testing $$($(GO) list $(CORE) | wc -l) packages; the first lines take a minute or two with a cold build cache"
	$(GO) test -vet=off -p 4 $(CORE)

test-all: ## every test of the root module
	$(GO) test -vet=off -p 4 ./...

# These packages, and these tests of others, use one goroutine: they decode, compare with encoding/json, or count bytes.
# The race detector cannot find anything in them, and makes them up to eight times as slow. make test-all runs them.
SEQUENTIAL = api/hashrange cmd/leat/internal/fielddiff internal/archtest \
	internal/quote internal/regularfile internal/trie internal/visible observe/recording/internal/frame \
	reconcile/owner testserver/internal/object testserver/internal/registry
SEQUENTIAL_TESTS = LikeReference$$|^TestAContextEndsALarge|^Test(AQuantityIsOfAnOrdinaryLength|ErrorsQuoteNothingOfAnObject)$$|^Test(BytesOfOneChange|BytesOfAnObject)$$|^Test(RelistOfKnownObjects|Skipping)DoesNotAllocate$$

# The seeds of random tests are fewer (-short), because make test-all runs all of them: here, what matters is the order of
# goroutines.
test-race: ## the same with the race detector, the modules scale/packed/zstd, adapter/clientgo and adapter/otel, and codec without unsafe
	@echo "compiling and testing with the race detector; the first lines take some minutes with a cold build cache"
	@ls -d $(SEQUENTIAL) >/dev/null
	@! grep -nE '^\s*go [a-z]|"sync|\.Go\(|t\.Parallel|testing/synctest|httptest\.New(TLS)?Server' $(SEQUENTIAL:%=%/*.go) || \
		{ echo "these packages use goroutines: remove them from SEQUENTIAL in the Makefile" >&2; exit 1; }
	$(GO) test -race -short -p 4 -skip '$(SEQUENTIAL_TESTS)' $$($(GO) list ./... | grep -v $(SEQUENTIAL:%=-e 'leat/%$$'))
	@for module in scale/packed/zstd adapter/clientgo adapter/otel; do \
		echo "$(GO) test -C $$module -race ./..."; $(GO) test -C $$module -race ./... || exit 1; \
	done
	$(GO) test -tags purego ./codec/...
	$(GO) test -gcflags='github.com/leatproject/leat/codec/...=-d=checkptr' -run 'LikeReference$$' ./codec

# Kubernetes' own packages take minutes to build with a cold cache, and as long again with the race detector. So CI
# tests this module without it. Use make test-cluster RACE=-race after changes that concern concurrency.
RACE ?=
test-cluster: ## the tests of the typed server, and of the adapter that is tested against it
	$(GO) test -C testserver/cluster $(RACE) ./...
	$(GO) test -C adapter/leatcache $(RACE) ./...

# How far make explore goes: at most DEPTH steps and about STATES states of each world.
DEPTH ?= 30
STATES ?= 100000
# The packages that have worlds.
EXPLORED = ./reflector ./informer ./workqueue ./scale/warmstart ./cachedclient ./manager/leaderelection ./scale/shard \
	./scale/scopes/internal/merge
explore: ## every state of small worlds of the protocols (make explore DEPTH=8 STATES=1000000)
	@for n in '$(DEPTH)' '$(STATES)'; do case "$$n" in ''|0*|*[!0-9]*|?????????*) \
		echo "make explore: DEPTH and STATES are numbers from 1 to 99999999, not '$$n'" >&2; exit 2;; esac; done
	$(GO) test -count=1 -p 1 -timeout=0 -run '^TestExplore$$' -v $(EXPLORED) -explore.depth=$(DEPTH) -explore.states=$(STATES)

model: ## the specification of list, watch and informer: random runs, and each transcript as a run of it (needs npm)
	LEAT_MODEL=1 $(GO) test ./docs -count=1 -v -run '^TestModel'

page-test: ## the live page in a Chromium (a minute; needs chromium, or its path in CHROMIUM)
	$(GO) test -C observe/livepage/browsertest -count=1 -parallel 4 .

# Most tests of e2e wait, and some kill, restart or compact their servers. So the tests of its root package run in groups,
# each in a process with an API server of its own, three groups at a time on two cores. A test that no group names belongs
# to the group others. make prints what a group says when it has ended. The race detector leaves out the comparison, which
# contains Kubernetes.
E2E_faults = ^Test(Faults|KilledInMidWatch|Compacted.*|WarmStart)$$
E2E_restores = ^Test(RestoredEtcd|WatchFromTheFuture|Pages|ShardedLists)$$
E2E_rollouts = ^Test(Deployments|StuckDeployment|Revisions)$$
E2E_fleets = ^Test(MembersDivideTheWork|Fleet|Election|TenThousandObjects)$$
E2E_GROUPS = rollouts faults restores fleets
E2E_TEST = -test.v -test.timeout=20m
.PHONY: e2e-others e2e-packages $(E2E_GROUPS:%=e2e-%)
e2e: $(SERVERS) ## the pipeline against a real etcd and kube-apiserver, and the test server compared with it
	$(GO) test -C e2e -race -c -ldflags=-w -o bin/ .
	@$(MAKE) --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync) -j 3 $(E2E_GROUPS:%=e2e-%) e2e-others e2e-packages
	$(GO) test -C e2e -count=1 -timeout=20m ./compare

$(E2E_GROUPS:%=e2e-%): e2e-%:
	cd e2e && bin/e2e.test $(E2E_TEST) -test.run='$(E2E_$*)'

empty :=
e2e-others:
	cd e2e && bin/e2e.test $(E2E_TEST) -test.skip='$(subst $(empty) $(empty),|,$(foreach group,$(E2E_GROUPS),$(E2E_$(group))))'

e2e-packages:
	$(GO) test -C e2e -race -count=1 -timeout=20m -p 1 -v $$($(GO) -C e2e list ./... | grep -v -e /compare -e '/e2e$$')

conformance: $(SERVERS) ## client-go, controller-runtime and kube-controller-manager with their defaults, against the typed server
	$(GO) test -C e2e/conformance -count=1 -p 1 $$($(GO) -C e2e/conformance list ./... | grep -v -e /suites -e /helm)

conformance-all: $(SERVERS) ## the same, with Helm and controller-runtime's own suites, also on leat's cache (some minutes)
	$(GO) test -C e2e/conformance -count=1 -p 1 -timeout=20m ./...

# Each project compiles Kubernetes again with what else it needs, so CI does not run this.
conformance-projects: $(SERVERS) ## suites of other projects on the real programs and on leat-server; the table of docs/envtest.md
	$(GO) test -C e2e/conformance -count=1 -timeout=0 -v -run '^TestProjects$$' ./suites -update -projects='$(or $(CONFORMANCE_PROJECTS),all)'

soak: ## the whole pipeline under churn and faults for SOAKTIME; fails unless heap, goroutines and descriptors are flat
	$(GO) test -race -count=1 -timeout=0 -run '^TestSoak$$' -v ./internal/soak -soak.time=$(SOAKTIME) $(SOAKFLAGS)

bench: ## leat and client-go, side by side; writes docs/benchmarks.md (about half an hour; Linux, nothing else running)
	$(GO) -C bench run ./cmd/bench -docs ../docs

bench-quick: ## the core of that in a few minutes; fails when a target that any machine can check is missed
	$(GO) -C bench run ./cmd/bench -quick
	OPTIONAL=1 TIME=100x BENCH='$(QUICKBENCH)' FILTER='.unit:(B/op OR allocs/op)' \
		tools/benchcompare.sh '$(or $(BASE),HEAD^)' ./codec ./deltafifo ./apiclient

# Each project compiles Kubernetes again with what else it needs, which takes minutes. So the module bench/projects is not
# in NESTED, and CI neither lints nor runs it.
PROJECTS ?= cronjob lws jobset training
bench-projects: ## the memory of the caches of real projects, on controller-runtime and on leat; the table of docs/fields.md
	$(foreach p,$(PROJECTS),$(GO) -C bench/projects run ./$(p) &&) :

# What bench-compare compares with, and of which packages. bench-quick prints allocations only, and those of these
# benchmarks. Without BASE it compares with the commit before.
BASE ?=
BENCHPACKAGES ?= ./api ./apiclient ./codec ./deltafifo ./informer ./reflector ./workqueue
QUICKBENCH = ^Benchmark(List|Events|SingleEvents|PutPop|Lookup)$$
bench-compare: ## this tree and an older commit by turns (make bench-compare BASE=HEAD~3 BENCHPACKAGES=./codec)
	tools/benchcompare.sh '$(BASE)' $(BENCHPACKAGES)

test-bench: ## the tests of the bench itself, of where leat meets client-go, and of leat-fields
	$(GO) test -C bench -p 1 ./...
	$(GO) test -C tools/leat-fields ./...

bench-real: $(SERVERS) ## the same against a real etcd and kube-apiserver; adds its rows to docs/benchmarks.md
	$(GO) -C bench run ./cmd/bench -real ../e2e/bin -docs ../docs

# These builds use neither -trimpath nor CGO_ENABLED=0, and e2e/servers requires the same versions of libraries as
# testserver/cluster. So most packages of Kubernetes are compiled once for both.
servers: $(SERVERS) ## build etcd, kube-apiserver, kube-controller-manager and kubectl into e2e/bin

e2e/bin/etcd: e2e/servers/go.mod e2e/servers/go.sum
	@echo "building etcd (half a minute with a cold cache)"
	@$(GO) build -C e2e/servers -ldflags='-s -w' -o ../bin/etcd go.etcd.io/etcd/server/v3
	@touch $@

# The server compares its own version with those that feature gates and stored data name, so it has to be told.
VERSION_FLAGS = -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES)))

e2e/bin/kube-apiserver: e2e/servers/go.mod e2e/servers/go.sum
	@echo "building kube-apiserver $(KUBERNETES) (four to six minutes with a cold cache, less after make test-cluster)"
	@$(GO) build -C e2e/servers -ldflags='-s -w $(VERSION_FLAGS)' -o ../bin/kube-apiserver \
		k8s.io/kubernetes/cmd/kube-apiserver
	@touch $@

# It shares most packages with kube-apiserver, which is built first.
e2e/bin/kube-controller-manager: e2e/servers/go.mod e2e/servers/go.sum
	@echo "building kube-controller-manager $(KUBERNETES) (two minutes with a cold cache)"
	@$(GO) build -C e2e/servers -ldflags='-s -w $(VERSION_FLAGS)' -o ../bin/kube-controller-manager \
		k8s.io/kubernetes/cmd/kube-controller-manager
	@touch $@

# Not a server, but a client that knows nothing of leat, and so a witness.
e2e/bin/kubectl: e2e/servers/go.mod e2e/servers/go.sum
	@echo "building kubectl $(KUBERNETES) (a minute with a cold cache)"
	@$(GO) build -C e2e/servers -ldflags='-s -w $(VERSION_FLAGS)' -o ../bin/kubectl \
		k8s.io/kubernetes/cmd/kubectl
	@touch $@

lint: lint-format lint-tidy lint-vet lint-static ## gofmt, gofumpt, go mod tidy, go vet for every platform, staticcheck

lint-format:
	@echo "gofmt, gofumpt"
	@files=$$(gofmt -s -l .) && [ -z "$$files" ] || { printf 'not formatted (gofmt -s -w):\n%s\n' "$$files" >&2; exit 1; }
	@files=$$($(TOOL) gofumpt -l .) && [ -z "$$files" ] || \
		{ printf 'not formatted (go tool -modfile=tools/go.mod gofumpt -w):\n%s\n' "$$files" >&2; exit 1; }

lint-tidy:
	@set -e; for module in $(MODULES); do \
		echo "go mod tidy -diff in $$module"; \
		$(GO) -C $$module mod tidy -diff || { echo "$$module/go.mod is not tidy (go mod tidy in $$module)" >&2; exit 1; }; \
	done

lint-vet:
	@$(GO) build -C tools -o bin/ ./vetown ./platformvet
	@set -e; export VET=$$($(GO) tool -n vet); for module in . $(NESTED); do \
		echo "go vet in $$module"; $(GO) -C $$module vet -vettool=$(CURDIR)/tools/bin/vetown ./...; \
	done
	@tools/bin/platformvet $(PLATFORMS) ./...

lint-static:
	@echo "staticcheck"; $(TOOL) staticcheck ./...
	@set -e; for module in $(NESTED); do echo "staticcheck in $$module"; (cd $$module && $(TOOL) staticcheck ./...); done

vuln: ## known vulnerabilities that the code can reach (govulncheck; asks vuln.go.dev)
	$(TOOL) govulncheck ./...

fuzz: FUZZBUILD = -fuzz=Fuzz
fuzz: FUZZCACHE = $$($(GO) env GOCACHE)/fuzz/$$package
fuzz: ## every fuzz target for FUZZTIME each (make fuzz FUZZTIME=10s)
	@$(FUZZ)

# By count and from the seeds alone, so that it takes as long each time. Without coverage, because so few inputs gain
# little from it, and with a cold cache all dependencies would be compiled once more for it.
fuzz-quick: FUZZTIME = 2000x
fuzz-quick: FUZZBUILD =
fuzz-quick: FUZZCACHE = $$scratch/cache
fuzz-quick: ## the same with 2,000 inputs each, in less than a minute
	@$(FUZZ)

# Each package is built once, whatever the number of its targets. An input that fails is printed, and stays in testdata/fuzz.
define FUZZ
set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
for found in $$($(GO) list -f '{{.ImportPath}}={{.Dir}}' $(FUZZPACKAGES)); do \
	package=$${found%%=*}; folder=$${found#*=}; \
	grep -qs '^func Fuzz.*\*testing\.F' $$folder/*_test.go || continue; \
	$(GO) test -c $(FUZZBUILD) -o $$scratch/test $$package; \
	for target in $$($$scratch/test -test.list '^Fuzz'); do \
		echo "$$package $$target, $(FUZZTIME)"; \
		(cd $$folder && $$scratch/test -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
			-test.fuzzcachedir "$(FUZZCACHE)") >$$scratch/log 2>&1 && continue; \
		cat $$scratch/log; input=$$(sed -n 's|.*Failing input written to ||p' $$scratch/log); \
		[ -z "$$input" ] || { echo "$$folder/$$input:"; cat "$$folder/$$input"; }; \
		exit 1; \
	done; \
done
endef

# gremlins compiles the package again for each mutant. Its dependencies are not in tools/go.mod, because only this target
# needs them. --dry-run lists the mutants; docs of its flags: gremlins unleash --help.
GREMLINS = github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
PACKAGE ?= ./deltafifo
MUTATEFLAGS ?= --timeout-coefficient 20
mutate: ## small changes to the code that no test notices (make mutate PACKAGE=./deltafifo); some seconds each
	nice $(GO) run $(GREMLINS) unleash $(MUTATEFLAGS) $(PACKAGE)
