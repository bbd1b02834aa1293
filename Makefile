# Every target has a line of help beside it; `make` alone prints them.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

export GOTOOLCHAIN ?= local
export GOFLAGS     ?= -buildvcs=false

BIN     := $(CURDIR)/bin
MODULES := . dev/localkube dev/images tools
TOOLS   := $(BIN)/tools

.PHONY: help
help: ## Show what can be made
	@awk 'BEGIN {FS = ":.*## "} \
	  /^## / {sub(/^## /, ""); printf "\n%s\n", $$0} \
	  /^[a-z][a-z0-9-]*:.*## / {printf "  \033[1m%-18s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## A real cluster on this machine
.PHONY: cluster cluster-down cluster-status
cluster: localkube images ## Start three Kubernetes nodes in three zones, load the images, and ask a pod of each Cassandra version by CQL
	$(BIN)/localkube up
	$(BIN)/localkube load $$($(BIN)/images path --all)
	cd dev/images && go run ./cmd/checkpods --kubeconfig "$$($(BIN)/localkube kubeconfig --path)"

cluster-down: localkube ## Stop that cluster and leave nothing behind
	$(BIN)/localkube down

cluster-status: localkube ## Show its nodes, processes, memory and disk
	$(BIN)/localkube status

## Build
.PHONY: build localkube images
build: ## Build the product's commands into bin/
	CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/...

localkube: ## Build the local Kubernetes command into bin/
	@cd dev/localkube && go build -o $(BIN)/localkube .

images: ## Assemble the Cassandra images (cached by the hash of what goes in)
	@cd dev/images && go build -o $(BIN)/images .
	$(BIN)/images build cassandra

## Test
.PHONY: test test-unit test-cluster lint verify
test: lint verify test-unit test-cluster ## Everything that must hold: lint, generated files, unit tests, and the cluster for real

test-unit: ## Unit, golden, property and fuzz-seed tests of all modules, with the race detector
	@for m in $(filter-out tools,$(MODULES)); do echo "== go test $$m"; (cd $$m && go test -race ./...) || exit 1; done

test-cluster: cluster ## The local cluster's own tests on real nodes: loss, partition, return, and a clean end
	cd dev/localkube && go test -tags cluster -timeout 30m -v ./test/...

lint: $(TOOLS)/golangci-lint ## Static checks, import rules among them
	@for m in $(filter-out tools,$(MODULES)); do echo "== lint $$m"; (cd $$m && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yaml ./...) || exit 1; done

verify: generate ## Fail if a generated file or a go.mod is not what its source says
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff) || { echo "$$m: run 'go mod tidy'"; exit 1; }; done
	@git diff --exit-code -- $(GENERATED) || { echo "generated files differ from their source: commit what 'make generate' made"; exit 1; }
	@[ -z "$$(git ls-files --others --exclude-standard -- $(GENERATED))" ] || { echo "generated files are not committed:"; git ls-files --others --exclude-standard -- $(GENERATED); exit 1; }

## Generate
GENERATED := api config docs/guide/api-reference.md

.PHONY: generate tidy fmt
generate: ## Remake every generated file

tidy: ## go mod tidy in every module
	@for m in $(MODULES); do (cd $$m && go mod tidy); done

fmt: $(TOOLS)/golangci-lint ## Format all Go code
	@for m in $(filter-out tools,$(MODULES)); do (cd $$m && $(TOOLS)/golangci-lint fmt --config $(CURDIR)/.golangci.yaml); done

$(TOOLS)/%: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	@cd tools && GOBIN=$(TOOLS) go install $$(go list -f '{{.ImportPath}}' tool | grep "/$*$$")
	@touch $@
