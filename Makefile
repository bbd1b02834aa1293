# Every target has a line of help beside it; `make` alone prints them.
SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
MAKEFLAGS     += --no-print-directory
.DEFAULT_GOAL := help

export GOTOOLCHAIN ?= local
export GOFLAGS     ?= -buildvcs=false

BIN   := $(CURDIR)/bin
TOOLS := $(BIN)/tools

# The modules of the repository. Those that need a running server have targets of their own.
UNIT_MODULES := . internal/simulate dev/localkube dev/images dev/demo tools/generate tools/mutants
MODULES      := $(UNIT_MODULES) test/console test/api $(wildcard test/e2e) tools

.PHONY: help
help: ## Show what can be made
	@awk 'BEGIN {FS = ":.*## "} \
	  /^## / {sub(/^## /, ""); printf "\n%s\n", $$0} \
	  /^[a-z][a-z0-9-]*:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Only a KUBECONFIG on make's command line counts: one in the environment may be that of something dear.
KUBECONFIG_GIVEN := $(if $(filter command%,$(origin KUBECONFIG)),$(KUBECONFIG))

## Use
.PHONY: demo demo-down
demo: $(if $(KUBECONFIG_GIVEN),,local-tools) ## Everything from nothing: Kubernetes, images, Helenus, a three-rack ring, a row written and read (KUBECONFIG=FILE uses a cluster you have, OPERATOR_IMAGE= and AGENT_IMAGE= the images you gave it)
	cd dev/demo && go run . up $(if $(KUBECONFIG_GIVEN),--kubeconfig $(abspath $(KUBECONFIG_GIVEN))) \
	  $(if $(OPERATOR_IMAGE),--operator-image $(OPERATOR_IMAGE)) $(if $(AGENT_IMAGE),--agent-image $(AGENT_IMAGE))

demo-down: ## Remove the demo and, if it was on this machine, its Kubernetes
	cd dev/demo && go run . down $(if $(KUBECONFIG_GIVEN),--kubeconfig $(abspath $(KUBECONFIG_GIVEN)))
	@$(if $(KUBECONFIG_GIVEN),:,$(MAKE) cluster-down)

## A real cluster on this machine
.PHONY: cluster cluster-down cluster-status
cluster: cluster-up ## Start three Kubernetes nodes in three zones, and ask a pod of each Cassandra version by CQL
	dev/localkube/check-cassandra.sh $(BIN)/localkube $(CASSANDRA_VERSIONS)

cluster-down: $(BIN)/localkube ## Stop that cluster and leave nothing behind
	$(BIN)/localkube down

cluster-status: $(BIN)/localkube ## Show its nodes, processes, memory and disk
	$(BIN)/localkube status

.PHONY: cluster-up local-tools
local-tools: $(BIN)/localkube $(BIN)/images
cluster-up: local-tools
	$(BIN)/localkube up
	$(BIN)/images build cassandra
	$(BIN)/localkube load $(foreach v,$(CASSANDRA_VERSIONS),"$$($(BIN)/images path cassandra-$(v))")

CASSANDRA_VERSIONS := 4.1.10 5.0.6 5.0.9

## Build
.PHONY: build images
build: ## Build the product's commands into bin/
	CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/...

images: $(BIN)/images ## Build all images: Cassandra's and our own (cached by the hash of what goes in)
	$(BIN)/images build cassandra own --repo .

# What depends on the time depends on that of the commit.
RELEASE     := $(BIN)/release
RELEASE_URL := https://github.com/helenus-io/helenus/releases/download

.PHONY: release
release: $(BIN)/images ## Write what is published of a VERSION=v0.1.0 into bin/release: images for amd64 and arm64, chart, manifest, plugin, what is in them, SHA256SUMS (KEY=cosign.key signs the images and the sums; COSIGN_PASSWORD is its password)
	@[ -n "$(VERSION)" ] || { echo "say which: make release VERSION=v0.1.0"; exit 1; }
	@[ -z "$$(git status --porcelain)" ] || { echo "there are changes that are not committed: a release is of a commit"; exit 1; }
	rm -rf $(RELEASE)
	$(BIN)/images release $(VERSION) --repo . --out $(RELEASE) --url $(RELEASE_URL)/$(VERSION) --created $$(git log -1 --format=%cI) $(if $(KEY),--key $(abspath $(KEY)))
	cd tools/generate && go run ./render --chart $(RELEASE)/helenus-$(VERSION:v%=%).tgz > $(RELEASE)/install.yaml
	cd $(RELEASE) && LC_ALL=C sha256sum * > .SHA256SUMS && mv .SHA256SUMS SHA256SUMS
	$(if $(KEY),$(BIN)/images sign $(RELEASE)/SHA256SUMS --key $(abspath $(KEY)))

# Go knows best whether a command is up to date.
.PHONY: $(BIN)/localkube $(BIN)/images
$(BIN)/localkube:
	@cd dev/localkube && go build -o $@ .
$(BIN)/images:
	@cd dev/images && go build -o $@ .

## Test
.PHONY: test compile test-unit test-console test-api compare test-cluster e2e e2e-full e2e-helm e2e-versions bench scale sweep sweep-full mutants lint verify
TEST_PARTS := lint verify compile test-unit test-console test-api sweep test-cluster e2e

test: ## Everything that must hold; needs root. A part that fails does not keep the others from running
	@failed=; \
	for part in $(TEST_PARTS); do \
	  started=$$SECONDS; result=ok; $(MAKE) $$part || { result=FAILED; failed="$$failed $$part"; }; \
	  summary="$${summary:-}$$(printf '%-12s %-6s %4d s' $$part $$result $$((SECONDS - started)))"$$'\n'; \
	done; \
	$(BIN)/localkube down || true; \
	printf '\n== summary\n%s' "$$summary"; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# What a release has for other machines, which need not compile where it does on this one.
ELSEWHERE := linux/arm64/... windows/amd64/kubectl-helenus darwin/arm64/kubectl-helenus

compile: ## Compile the programs for another system or processor that is released, with each commit the next (ELSEWHERE=linux/arm64/... is one)
	$(eval there = $(subst /, ,$(word $(shell echo $$(($(COMMITS) % $(words $(ELSEWHERE)) + 1))),$(ELSEWHERE))))
	CGO_ENABLED=0 GOOS=$(word 1,$(there)) GOARCH=$(word 2,$(there)) go build -o /dev/null ./cmd/$(word 3,$(there))

test-unit: ## Unit, golden, property and fuzz-seed tests, with the race detector where threads run
	@failed=; for m in $(filter-out internal/simulate,$(UNIT_MODULES)); do echo "== go test $$m"; (cd $$m && go test -timeout 30m -race ./...) || failed="$$failed $$m"; done; \
	echo "== go test internal/simulate"; (cd internal/simulate && go test -timeout 30m ./...) || failed="$$failed internal/simulate"; \
	(cd internal/simulate && go test -race ./apiserver/... ./sweep/... ./timeline/... ./process/...) || failed="$$failed internal/simulate"; \
	echo "== go test test/e2e"; (cd test/e2e && go test ./...) || failed="$$failed test/e2e"; \
	[ -z "$$failed" ] || { echo "unit tests failed in:$$failed"; exit 1; }
	@# A world runs in one thread of control, where nothing can race; what worlds share can. Of test/e2e it is what
	@# the end-to-end tests and the benchmarks are made of: they themselves have the tag e2e.

APT_INSTALL := apt-get install -qy --no-install-recommends
test-console: ## The console in a real Chromium: installs Debian's if there is none, which needs root
	@command -v chromium chromium-browser google-chrome >/dev/null || $(APT_INSTALL) chromium || { apt-get update -q; $(APT_INSTALL) chromium; }
	cd test/console && go test -timeout 20m ./...

test-api: ## Every rule of the API and every policy, against a real API server
	cd test/api && go test -timeout 20m ./...

compare: ## The API server of the simulator against a real one, by other random requests each time (REQUESTS=60000 for many)
	cd test/api && go test -timeout 60m -count 1 -v ./compare -compare.seed 0 $(if $(REQUESTS),-compare.requests $(REQUESTS))

test-cluster: local-tools ## The local Kubernetes for real: lost and partitioned hosts, nothing left behind, then a pod of Cassandra (leaves it running)
	$(BIN)/localkube down
	cd dev/localkube && go test -tags cluster -timeout 30m ./cluster/...
	@$(MAKE) cluster CASSANDRA_VERSIONS=5.0.9 # the other releases run in the end-to-end tests

# What a failed test leaves to look into stands under bin/_artifacts; what it said is said again at the end.
E2E := $(TOOLS)/gotestsum --format standard-verbose -- -tags e2e -count 1 -artifacts -outputdir $(BIN)

# The tests of one of several shards, by turns: the host that runs the second of three has SHARD=2/3.
SHARD_TESTS = go test -tags e2e -list . . | awk -v shard=$(SHARD) 'BEGIN { split(shard, s, "/") } /^Test/ && n++ % s[2] == s[1] - 1 { printf "%s%s$$", sep, $$1; sep = "|" }'
E2E_RUN     = -run "^($(or $(RUN),$$($(SHARD_TESTS))))"

COMMITS = $(shell git rev-list --count HEAD 2>/dev/null || echo 0)

e2e: SHARD ?= $(shell echo $$(($(COMMITS) % 6 + 1)))/6
e2e: local-tools $(TOOLS)/gotestsum ## Helenus end to end on real Cassandra, on this machine's Kubernetes: every sixth test, the others with the next commits (SHARD=1/1 runs all, RUN=name some, such as RUN=TestThreeRacks)
	cd test/e2e && $(E2E) -timeout 60m $(E2E_RUN) . -patience 2
	@# A host may be slow or busy, and no test asserts speed.

e2e-full: SHARD ?= 1/1
e2e-full: local-tools $(TOOLS)/gotestsum ## All end-to-end tests, also those that take too long for every change, and a report of what clients saw (RUN=name runs some; SHARD=2/3 a third of them)
	cd test/e2e && $(E2E) -timeout 180m $(E2E_RUN) . \
	  -full -report $(BIN)/e2e-report.md -commit $$(git rev-parse --short HEAD)

e2e-helm: local-tools $(TOOLS)/gotestsum $(TOOLS)/helm ## The chart by Helm itself, beside a ring that serves: installed, upgraded, taken back, uninstalled, installed again
	cd test/e2e && $(E2E) -timeout 60m -run '^TestHelm$$' . -helm $(TOOLS)/helm

# Of each minor release that is supported the last patch that dev/localkube can run.
KUBERNETES   ?= 1.34.4 1.35.4 1.36.3
VERSIONS_RUN := TestThreeRacks|TestPodDeleted|TestAgentKilled|TestEvicted|TestStrangersAreRefused|TestNamespacesAreRestricted|TestNewerOperator

e2e-versions: local-tools ## What may depend on Kubernetes, on each release that Helenus is tried on (an hour and more, since each is built first; KUBERNETES=1.34.4 is one)
	@for v in $(KUBERNETES); do echo "== Kubernetes $$v"; \
	  $(BIN)/localkube down && $(BIN)/localkube up --kubernetes-version $$v && $(MAKE) e2e RUN='$(VERSIONS_RUN)' && $(MAKE) e2e-helm || exit; \
	done; $(BIN)/localkube down

# Each commit does the next share of a sweep, so that they all come round. A share is the same points on a fast
# machine and on a slow one: what it finds does not depend on the machine.
SWEEP_PARTS := 6000
SWEEP_PART  ?= $(shell echo $$(($(COMMITS) % $(SWEEP_PARTS) + 1)))

sweep: ## Break Helenus in a simulated world: a share of all points and faults, the next for each commit (SWEEP_PART=7 is one of its 6,000)
	cd internal/simulate && GOGC=400 go run ./cmd/sweep run --part $(SWEEP_PART)/$(SWEEP_PARTS)

# Views can be stale in more ways than all other faults together can be injected, and the time is bounded.
SWEEP_QUOTAS := crash=600,error=900,read=120,agent=240,stale=3050,world=650,user=490
# What must have had an effect for a sample to count, and of crashes and errors one of each with each verb on each kind.
SWEEP_LEAST  := crash=580,error=870,agent=200,stale=2500
SEED         ?= 1

sweep-full: ## A sample of all points and faults, and every property of the spec: takes an hour (SEED=2 takes another sample)
	cd internal/simulate && GOGC=400 go run ./cmd/sweep run --seed $(SEED) --quota $(SWEEP_QUOTAS) --least $(SWEEP_LEAST)
	cd internal/simulate && go run ./cmd/sweep spec --seed $(SEED)

MUTANT_WORKERS := 2

mutants: $(TOOLS)/gremlins ## Change the core's code in a thousand places and see that its tests notice (PACKAGES=internal/core/guard is one package; MUTANT_WORKERS=1 leaves a core free)
	cd tools/mutants && nice -n 15 go run . --root $(CURDIR) --gremlins $(TOOLS)/gremlins --logs $(BIN)/mutants --workers $(MUTANT_WORKERS) $(PACKAGES)

bench: local-tools ## Measure formation against joining one by one, memory, idle writes, and roll-outs (takes an hour; leave the host alone meanwhile; PARTS=rollout measures these alone)
	cd test/e2e && go run ./bench $(if $(PARTS),--parts $(PARTS))

scale: ## Measure the operator beside a hundred idle clusters, without Cassandra (takes a quarter of an hour; leave the host alone meanwhile)
	go build -o $(BIN)/helenus ./cmd/helenus
	cd test/api && go run ./scale

# Paragraphs of comments; a tab counts as four columns.
LONG_COMMENTS := (my $$l = $$_) =~ s/\t/    /g; chomp $$l; \
  if (length $$l > 100 && $$l =~ m{^ *// [^+|-]} && $$l !~ m{^ *//  } && $$l =~ / .* .* /) { print "$$ARGV:$$.\n"; $$bad = 1 } \
  close ARGV if eof; END { exit $$bad // 0 }

lint: $(TOOLS)/golangci-lint ## Static checks, the import rules of the layout among them
	@failed=; for m in $(filter-out tools,$(MODULES)); do echo "== lint $$m"; (cd $$m && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yaml ./...) || failed="$$failed $$m"; done; \
	[ -z "$$failed" ] || { echo "static checks failed in:$$failed"; exit 1; }
	@echo "== comments of more than 100 columns"; git ls-files '*.go' | grep -v zz_generated | xargs perl -CSD -ne '$(LONG_COMMENTS)'

verify: generate ## Fail if a generated file or a go.mod is not what its source says
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff) || { echo "$$m: run 'make tidy'"; exit 1; }; done
	@changed=$$(git status --porcelain -- $(GENERATED)); [ -z "$$changed" ] || \
	  { echo "generated files are not what their source says; commit what 'make generate' made:"; echo "$$changed"; git diff -- $(GENERATED); exit 1; }

## Keep in order
GENERATED := api charts config docs/guide/api-reference.md internal/console/dist

.PHONY: generate tidy fmt
generate: $(TOOLS)/controller-gen $(TOOLS)/crd-ref-docs ## Remake every generated file
	cd tools/generate && go run . --root $(CURDIR) --controller-gen $(TOOLS)/controller-gen --crd-ref-docs $(TOOLS)/crd-ref-docs

tidy: ## go mod tidy in every module
	@for m in $(MODULES); do (cd $$m && go mod tidy); done

fmt: $(TOOLS)/golangci-lint ## Format all Go code
	@for m in $(filter-out tools,$(MODULES)); do (cd $$m && $(TOOLS)/golangci-lint fmt --config $(CURDIR)/.golangci.yaml); done

$(TOOLS)/helm: Makefile # the program has libraries of its own, which are not those of the chart's rendering
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) go install helm.sh/helm/v4/cmd/helm@v4.3.1

$(TOOLS)/gremlins: tools/mutants/go.mod tools/mutants/go.sum
	@mkdir -p $(TOOLS)
	cd tools/mutants && GOBIN=$(TOOLS) go install github.com/go-gremlins/gremlins/cmd/gremlins
	@touch $@

$(TOOLS)/%: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && GOBIN=$(TOOLS) go install $$(cd $(CURDIR)/tools && go list tool | grep "/$*$$")
	@touch $@
