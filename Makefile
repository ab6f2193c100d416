# SPDX-License-Identifier: Apache-2.0

# Everything a contributor runs. "make" alone lists the targets.
# Go, gcc and make are enough for run, test, bench, fuzz and distro; lint and
# generate compile their tools from tools/go.mod; e2e needs real parts.
# No path of this machine is in what is built (-trimpath): a fresh clone finds it in
# the build cache. Nothing uses cgo, and the released programs are built without it
# (CGO_ENABLED=0): tests and linters are as well, so that each package is compiled once.

SHELL      := bash
.SHELLFLAGS := -euo pipefail -c
GO         ?= go
FUZZTIME   ?= 10s
CONFIG     ?= distro/config/replay.yaml
PYTHON     ?= .venv/bin/python
PREFIX     ?= /usr/local
# More flags of go test.
GOTESTFLAGS ?=

# 1 is for the race detector. Not exported: the key of shared parts has it.
CGO_ENABLED ?= 0
override GO := CGO_ENABLED=$(CGO_ENABLED) $(GO)

# Makes a part that many checkouts share; scripts/cached.sh says how it is keyed.
CACHED := scripts/cached.sh

# With the commit in it, also where the environment switches that off.
BUILD_LOCKSTEP := $(GO) build -trimpath -buildvcs=auto -o bin/lockstep ./cmd/lockstep

TORCH := torch==2.15.0 numpy==2.4.6
NVTX  := nvtx==0.2.17 nvidia-nvtx==13.2.86
DUCKDB := duckdb==2.0.1

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Use

.PHONY: run
run: inject ## Train on four processes, one of them slow, and say which, live (DEMO="--fault hang": another fault)
	@$(BUILD_LOCKSTEP)
	@bin/lockstep demo $(DEMO)

.PHONY: run-torch
run-torch: inject $(PYTHON) ## The same with PyTorch, on the CPU; PYTHON= names an interpreter that has it
	@$(BUILD_LOCKSTEP)
	@bin/lockstep demo --torch=$(PYTHON) $(DEMO)

.PHONY: replay
replay: ## Replay the recording in testdata/ through a small collector and print the finding
	@mkdir -p bin
	@$(BUILD_LOCKSTEP)
	@bin/lockstep run $(CONFIG)

##@ Build

.PHONY: lockstep
lockstep: bin/lockstep ## Build the command, bin/lockstep

.PHONY: bin/lockstep
bin/lockstep:
	@mkdir -p bin
	$(BUILD_LOCKSTEP)

.PHONY: inject
inject: ## Compile the NCCL plugin and the demo's worker into bin/
	@mkdir -p bin
	@$(MAKE) --no-print-directory -s -C inject/nccl
	@$(MAKE) --no-print-directory -s -C demo

.PHONY: distro
distro: ## Compile the full collector, bin/otelcol-lockstep
	@scripts/distro.sh builder-config.yaml distro bin/otelcol-lockstep

.PHONY: distro-agent
distro-agent: ## Compile the lean collector for nodes, bin/otelcol-lockstep-agent
	@scripts/distro.sh builder-config-agent.yaml distro/agent bin/otelcol-lockstep-agent

.PHONY: install
install: lockstep inject distro distro-agent ## Install the programs, the plugin and the configurations below PREFIX=/usr/local
	@case '$(PREFIX)' in *' '* | *'	'*) bad=1 ;; /*) bad= ;; *) bad=1 ;; esac; [ -z "$$bad" ] || \
		{ echo "install: got PREFIX=$(PREFIX); want an absolute path without blanks" >&2; exit 2; }
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/share/lockstep/config
	install -m 755 bin/lockstep bin/otelcol-lockstep bin/otelcol-lockstep-agent $(DESTDIR)$(PREFIX)/bin
	install -m 755 bin/libnccl-profiler-lockstep.so $(DESTDIR)$(PREFIX)/lib
	install -m 644 distro/config/*.yaml $(DESTDIR)$(PREFIX)/share/lockstep/config

.PHONY: gpu-kit
gpu-kit: bin/zig ## Make bin/gpu-kit, a folder that shows what works on a machine with a GPU (GPU_KIT_ARCH=aarch64: for Arm)
	@gpukit/build.sh bin/gpu-kit

##@ Test

# All packages but those that mdatagen generates. The tests in these are generated as
# well, and each is a program to link: a quarter of all.
TEST_PACKAGES = $(GO) list -f '{{if and (ne .Name "metadata") (ne .Name "metadatatest")}}{{.ImportPath}}{{end}}' ./...

.PHONY: test
test: ## Run all hermetic tests (Go, gcc and make only); GOTESTFLAGS= adds flags of go test
	$(GO) test -trimpath $(GOTESTFLAGS) $$($(TEST_PACKAGES))

.PHONY: test-full
test-full: ## Run them in the full tier: more seeds and jobs, C with sanitizers, generated packages
	LOCKSTEP_TESTS=full $(GO) test -trimpath -timeout 60m $(GOTESTFLAGS) ./...

.PHONY: test-capabilities
test-capabilities: ## Find docs/capabilities.md out on all jobs that it speaks of
	LOCKSTEP_TESTS=full $(GO) test -trimpath -count=1 ./internal/capability

.PHONY: e2e
# Most of these tests wait for processes: six at a time leave room on two cores.
e2e: distro distro-agent inject bin/lockstep gpu-kit bin/jaeger bin/kafka bin/nvtx-venv bin/duckdb-venv bin/cupti ## Run the tests against real Jaeger, Kafka, Prometheus, DuckDB, NVTX and CUPTI
	@$(MAKE) --no-print-directory -s -C inject/cupti tests
	cd e2e && $(GO) test -trimpath -count=1 -timeout 20m -parallel 6 -v $(GOTESTFLAGS) ./...
	cd bench/skew && $(GO) test -trimpath -count=1 $(GOTESTFLAGS) ./...
	cd bench/kafka && $(GO) test -trimpath -count=1 $(GOTESTFLAGS) ./...

# The tests of inject/python that skip without PyTorch; make test runs the others.
NEED_TORCH := ^TestPackage$$/^test_torch|^TestAFlippedBitIsFound$$

# Those that judge what jobs of PyTorch and real libraries save.
SAVE_TESTS := ^TestTorch(Libraries|Killed)$$

.PHONY: e2e-torch
e2e-torch: distro inject bin/lockstep gpu-kit $(PYTHON) bin/torch-libraries ## Test the hooks of lockstep_scope on PyTorch, on several processes (HOOKS=full: all of these; SAVES=none: no saves)
	$(if $(HOOKS),LOCKSTEP_TESTS=$(HOOKS)) PYTHON=$(abspath $(PYTHON)) $(GO) test -trimpath -count=1 -timeout 30m -v $(GOTESTFLAGS) -run '$(NEED_TORCH)' ./inject/python
	$(if $(filter none,$(SAVES)),,LOCKSTEP_TORCH_PYTHON=$(abspath $(PYTHON)) $(GO) test -trimpath -count=1 -timeout 10m -v $(GOTESTFLAGS) -run '^TestPyTorch' ./internal/ckptsim)
	cd e2e && LOCKSTEP_TORCH_PYTHON=$(abspath $(PYTHON)) LOCKSTEP_TORCH_LIBRARIES=$(abspath bin/torch-libraries) $(GO) test -trimpath -count=1 -timeout 20m -parallel 3 -v $(GOTESTFLAGS) -run '^TestTorch' $(if $(filter none,$(SAVES)),-skip '$(SAVE_TESTS)') ./...

.PHONY: e2e-cupti
e2e-cupti: inject bin/cupti ## Run the CUPTI client with NVIDIA's own libraries, without a driver
	@$(MAKE) --no-print-directory -s -C inject/cupti tests
	cd e2e && $(GO) test -trimpath -count=1 -v -run TestRealCupti ./...

# Apart from e2e, since PyTorch is gigabytes.
.PHONY: e2e-recordings
e2e-recordings: bin/lockstep $(PYTHON) ## Record ten training runs with PyTorch, and judge each
	rm -rf bin/recordings
	PYTHON=$(abspath $(PYTHON)) testdata/recordings/regenerate.sh bin/recordings
	cd e2e && LOCKSTEP_RECORDINGS=$(CURDIR)/bin/recordings $(GO) test -trimpath -count=1 -v -run TestRecordingsAreJudgedRight ./...

# What is saved by is asked for by name: a framework that is not to be had is skipped.
FRAMEWORKS ?= transformers==5.23.0 accelerate==1.15.0 lightning==2.6.6 orbax-checkpoint==0.12.8 jax==0.10.2 \
	torchdata==0.11.0 tyro==1.0.17 datasets==4.7.0 hydra-core==1.3.8 wrapt==2.5.2 onnx==1.23.2 strenum==0.5.0 overrides==7.7.0 toml==0.10.2 sentencepiece==0.2.3
# Those that ask for other versions of what is there already, or for what a save does not need.
FRAMEWORKS_ALONE ?= torchtitan==0.3.0 torch_checkpointing==0.1.1 spmd_types==0.2.3 megatron-core==0.16.1 nemo_toolkit==3.0.0 \
	nv-one-logger-core==2.3.1 nv-one-logger-training-telemetry==2.3.1 nv-one-logger-pytorch-lightning-integration==2.3.1

.PHONY: e2e-frameworks
e2e-frameworks: bin/lockstep .venv-frameworks/bin/python ## Judge what real frameworks save, and what they leave that are killed while they do, KILLS=200 times each: an hour
	.venv-frameworks/bin/python -m pip install --quiet --no-cache-dir $(FRAMEWORKS)
	DS_BUILD_OPS=0 .venv-frameworks/bin/python -m pip install --quiet --no-cache-dir --no-build-isolation setuptools deepspeed==0.19.8
	.venv-frameworks/bin/python -m pip install --quiet --no-cache-dir --no-deps $(FRAMEWORKS_ALONE)
	cd e2e && LOCKSTEP_FRAMEWORKS_PYTHON=$(abspath .venv-frameworks/bin/python) LOCKSTEP_KILLS=$(or $(KILLS),200) $(GO) test -trimpath -count=1 -timeout 120m -v -run '^TestFrameworks' ./...

.PHONY: gpu-run
gpu-run: ## Keep a run of the GPU kit on a GPU, REPORT=report.json, and write docs/gpu.md and what documents claim
	@[ -n "$(REPORT)" ] || { echo "gpu-run: got no REPORT; want REPORT=report.json" >&2; exit 2; }
	$(GO) run -trimpath ./gpukit/runs "$(REPORT)"

.PHONY: gpu-kit-chroot
gpu-kit-chroot: gpu-kit ## Run the GPU kit as root in bare systems of other distributions, without a network (ROOTS="...": in these folders)
	gpukit/chroot.sh bin/gpu-kit $(ROOTS)

.PHONY: kills
kills: distro distro-agent inject ## Kill agent, gateway and writers of lines under load, KILLS=30 times each, and print what was lost and which findings went on: ten minutes
	cd e2e && LOCKSTEP_KILLS=$(or $(KILLS),30) LOCKSTEP_E2E_REQUIRE=1 $(GO) test -trimpath -count=1 -timeout 30m -v -run '^(TestKills|TestKilledWhileWritingLines_LosesAtMostTheCutLine|TestGatewayKilled_OpenFindingsGoOn)$$' ./...

.PHONY: crash-checkpoints
crash-checkpoints: ## Kill jobs while they save, and crash their machines, and judge what they leave: some minutes
	LOCKSTEP_CKPT_KILLS=200 LOCKSTEP_CKPT_CRASHES=10000 $(GO) test -trimpath -count=1 -timeout 30m -v -run '^(TestKilled|TestCrashStates)$$' ./internal/ckpt

.PHONY: doors
doors: distro ## Attack the collector and the ring's library through every door of docs/security.md, a quarter of an hour (DOORS=Probes: some)
	LOCKSTEP_DOORS=$(abspath bin/otelcol-lockstep) $(GO) test -trimpath -count=1 -timeout 60m -v -run '$(or $(DOORS),.)' ./bench/doors

.PHONY: models
models: ## Check the models of save orders in docs/models with Spin, half a minute
	docs/models/check.sh

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 10s) each
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

.PHONY: mutation
mutation: ## Measure how many mutants of the full tier of tests the quick tier kills, an hour or two (MUTATION="-n 20": fewer)
	$(GO) run -trimpath ./bench/mutation $(MUTATION)

# With the flags of the tests: what these compiled is in the build cache.
LINT = CGO_ENABLED=$(CGO_ENABLED) GOFLAGS="$$($(GO) env GOFLAGS) -trimpath" $(CURDIR)/bin/golangci-lint run --timeout 20m

.PHONY: lint
lint: bin/golangci-lint ## Run the linters over the root and e2e modules; look for built files and missing licenses
	scripts/check-tree.sh
	scripts/spdx.sh
	$(LINT)
	cd e2e && $(LINT) --config ../.golangci.yml
	cd bench/skew && $(LINT) --config ../../.golangci.yml
	cd bench/kafka && $(LINT) --config ../../.golangci.yml

##@ Develop

.PHONY: fmt
fmt: bin/golangci-lint ## Format all Go files
	bin/golangci-lint fmt
	cd e2e && ../bin/golangci-lint fmt --config ../.golangci.yml

.PHONY: generate
generate: bin/builder ## Regenerate component metadata and distro/
	$(GO) generate ./...
	scripts/generate-distro.sh

.PHONY: check-generate
check-generate: bin/builder ## Fail where generated sources are stale
	scripts/generate-distro.sh --check
	scripts/check-metadata.sh

.PHONY: bench
bench: ## Run the benchmarks and the comparisons in bench/
	scripts/bench.sh

.PHONY: bench-kafka
bench-kafka: bin/kafka ## Compare partitioned_kafka with contrib's kafka on a real broker, three minutes (BENCH_KAFKA="-rounds 5": flags)
	cd bench/kafka && $(GO) run -trimpath . $(BENCH_KAFKA)
DATA ?= ../shared/data

.PHONY: bench-columns
bench-columns: ## Print how many bytes an operation takes as Parquet, against OTLP with zstd (DATA=folder: of real traces; COLUMNS=1: each column)
	@$(GO) run -trimpath ./bench/columns -data "$(DATA)" $(if $(COLUMNS),-columns)
.PHONY: bench-ceiling
bench-ceiling: ## Measure how many spans a core of one gateway analyses, by stage, 8 to 16,384 ranks, four minutes (CEILING=-quick: 20 seconds)
	$(GO) run -trimpath ./bench/ceiling $(CEILING)


.PHONY: bench-stages
bench-stages: distro bin/kafka ## Measure what two stages behind a real Kafka cost a span, 64 to 16,384 ranks, six minutes (STAGES="-ranks 64,512": flags)
	$(GO) run -trimpath ./bench/stages $(STAGES)

.PHONY: scoreboard
scoreboard: ## Name stragglers in simulated jobs with several methods, and print who was right, half an hour (SCOREBOARD=-quick: a minute or two)
	$(GO) run ./bench/scoreboard $(SCOREBOARD)

.PHONY: compare
compare: ## Run BASE=rev and the working tree on the same inputs and print what differs, ten minutes (BENCH=1: their benchmarks in turns; COMPARE="-only hang": flags)
	@[ -n "$(BASE)" ] || { echo "compare: got no BASE; want BASE=rev, the revision to compare with" >&2; exit 2; }
	@$(GO) run -trimpath ./bench/compare -base "$(BASE)" $(if $(BENCH),-bench) $(COMPARE)

.PHONY: census
census: ## Count what is done outside of its one place: life cycles, parses of evidence, quantiles, maps without a limit, evictions by hand (BASE=rev: before and after; CENSUS=-v: lists)
	@$(GO) run -trimpath ./bench/census $(if $(BASE),-base "$(BASE)") $(CENSUS)

# How long each kind of hostile load is sent, how often, and which (all where it is empty).
DURATION ?= 5m
RATE     ?= 1000
KINDS    ?=

.PHONY: hostile
hostile: distro ## Send a collector each kind of valid but hostile load for DURATION=5m, RATE=1000 a second (KINDS=jobs,spans: these), and see whether its memory stays and others' findings are right
	$(GO) run -trimpath ./bench/hostile -duration $(DURATION) -rate $(RATE) -kinds "$(KINDS)"

.PHONY: soak
soak: distro ## Run collectors under ordinary load for DURATION=30m and see whether memory, goroutines and descriptors stay
	@$(MAKE) --no-print-directory -s -C inject tests
	$(GO) run -trimpath ./bench/hostile -soak -duration $(if $(filter file,$(origin DURATION)),30m,$(DURATION))

.PHONY: record-hangs
record-hangs: $(PYTHON) ## Make real PyTorch jobs hang anew, in place of testdata/hangs, and judge each
	PYTHON=$(abspath $(PYTHON)) testdata/hangs/regenerate.sh
	$(GO) test -trimpath -count=1 -v -run TestRecordedHangs ./internal/dumpset

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist .distro-check distro/.agent-check

# Parts that take minutes and depend on versions alone: made once for all checkouts.
.PHONY: bin/builder bin/golangci-lint bin/jaeger bin/kafka bin/nvtx-venv bin/duckdb-venv bin/cupti bin/zig bin/torch-libraries .venv/bin/python
bin/builder:
	@$(CACHED) $@ "$$(cat tools/go.mod tools/go.sum | sha256sum)" scripts/parts.sh tool go.opentelemetry.io/collector/cmd/builder

# An environment links to the interpreter that made it.
PYTHON_KEY = $(shell python3 -c 'import os, sys; print(sys.version, os.path.realpath(sys.executable))')

.venv/bin/python:
	@$(CACHED) .venv "$(PYTHON_KEY)" scripts/parts.sh venv $(TORCH)

# Libraries that save checkpoints, for PYTHONPATH: the environment is shared with tests that want PyTorch alone.
LIBRARIES := e2e/testdata/libraries/requirements.txt
bin/torch-libraries: $(PYTHON)
	@$(CACHED) $@ "$(PYTHON_KEY) $(TORCH) $$(sha256sum <$(LIBRARIES))" env DS_BUILD_OPS=0 sh -c \
		'$(PYTHON) -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation --target "$$OUT" -r $(LIBRARIES)'

bin/golangci-lint:
	@$(CACHED) $@ "$$(cat tools/go.mod tools/go.sum | sha256sum)" scripts/parts.sh tool github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/jaeger:
	@$(CACHED) $@ "$$(cat e2e/jaeger/go.mod e2e/jaeger/go.sum | sha256sum)" scripts/parts.sh jaeger

# The jars of a Kafka broker, by Maven; Java 17 runs them.
bin/kafka:
	@$(CACHED) $@ "$$(sha256sum <e2e/kafka/pom.xml)" scripts/parts.sh kafka

# NVTX as a Python program has it, and the header of a C program.
bin/nvtx-venv:
	@$(CACHED) $@ "$(PYTHON_KEY)" scripts/parts.sh venv $(NVTX)

# DuckDB as a Python module, for the queries of docs/format/parquet.md.
bin/duckdb-venv:
	@$(CACHED) $@ "$(PYTHON_KEY)" scripts/parts.sh venv $(DUCKDB)

# NVIDIA's libraries as their packages have them, one of each generation; no driver
# and no GPU is needed to load them. The program that does comes from inject/cupti.
CUPTI_WHEELS := nvidia-cuda-cupti-cu11==11.8.87 nvidia-cuda-cupti-cu12==12.9.79 nvidia-cuda-cupti==13.5.25
bin/cupti:
	@$(CACHED) $@ "$(CUPTI_WHEELS)" scripts/parts.sh cupti $(CUPTI_WHEELS)

# Zig, whose C compiler builds for an old C library.
bin/zig:
	@$(CACHED) $@ "$(PYTHON_KEY)" scripts/parts.sh venv ziglang==0.15.2

# An environment of its own: the frameworks would change that which checkouts share.
.venv-frameworks/bin/python:
	python3 -m venv .venv-frameworks
	.venv-frameworks/bin/pip install --quiet --no-cache-dir $(TORCH) || { rm -rf .venv-frameworks; exit 1; }
