# make run       build, and show the main job
# make check     most unit tests, those that need no root, network or images: about a minute
# make test      most unit tests and the end-to-end tests of the main job: some minutes
# make test-all  every test that this machine can run: what the gate runs
# See README.md. Missing Debian packages are installed with apt where that is allowed.

SHELL := /bin/bash
.DEFAULT_GOAL := build

# Distributions ship a Go that will not fetch a newer toolchain by itself.
export GOTOOLCHAIN ?= auto
export CGO_ENABLED := 1
export GOFLAGS := -buildvcs=false

# runc_nocriu leaves checkpointing out; netgo and osusergo keep a static binary
# from loading libraries at run time; urfave_cli_no_docs leaves out a Markdown
# parser that each start would set up.
TAGS := seccomp,netgo,osusergo,runc_nocriu,urfave_cli_no_docs
LDFLAGS := -s -w $(shell .ci/built-from.sh) -extldflags -static
VERSION := $(shell sed -n 's/^const version = "\(.*\)"/\1/p' cmd/toolcell/version.go)

# Real images for the tests are built once and kept here.
export TOOLCELL_TEST_IMAGES ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolcell-test/images
export TOOLCELL_TEST_NPM ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolcell-test/npm
export TOOLCELL_TEST_PYPI ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolcell-test/pypi
export TOOLCELL_TEST_CLIENTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolcell-test/clients
PREFIX ?= /usr/local

.PHONY: build run check test test-all test-deps test-vm lint vulncheck fuzz soak install clean FORCE

build: bin/toolcell

bin/%: FORCE | deps
	@mkdir -p bin
	@.ci/building.sh $@ go build -v -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $@ ./$(if $(filter toolcell,$*),cmd,examples)/$*

.PHONY: deps
deps:
	@.ci/deps.sh build

run: bin/toolcell bin/calendar bin/tasks bin/demo
	@bin/demo -toolcell bin/toolcell -calendar bin/calendar -tasks bin/tasks

# ./... leaves out what is below a folder like .ci.
PACKAGES := ./... ./.ci/pack

# The end-to-end tests start the real binary; all other packages have unit tests.
E2E := ./cmd/toolcell/e2e
UNIT = $$(go list -tags $(TAGS) $(PACKAGES) | grep -v '$(patsubst .%,%,$(E2E))$$')

# Unit tests that read real images.
IMAGED := ./rootfs

# A comment `//test:KIND` above a test says where it runs:
#   mainjob  make test runs it, of the end-to-end tests: what a call goes through from end
#            to end, and the commands that a new user types
#   long     of the unit tests, only test-all runs it, with the race detector
#   alone    the race detector would make it ten times slower and has nothing to see: one
#            goroutine reads or computes a lot
# What takes seconds and is not long skips with -short, which is how check runs.
marked = ^($$(git grep -hA1 '^//test:$(1)$$' -- '*_test.go' | sed -n 's/^func \(Test[[:alnum:]]*\).*/\1/p' | paste -sd '|'))$$

# Packages with anything concurrent in code or tests, which the race detector watches.
CONCURRENT := ^[[:space:]]+go [a-zA-Z]|^[[:space:]]+"sync(/atomic)?"|errgroup|AfterFunc
# Those with long tests come first, or one core would have nothing to do in the end.
RACED = $$(git grep -lE '$(CONCURRENT)' -- '*.go' ':!$(E2E)' | xargs -n 1 dirname | sort -u | \
	while read -r dir; do echo "$$(cat "$$dir"/*_test.go 2>/dev/null | wc -l) ./$$dir"; done | sort -rn | cut -d ' ' -f 2)

# Parsers of untrusted input, whose time and memory are measured.
BOUNDED = $$(git grep -l boundtest.Run -- '*bounds_test.go' | xargs -n 1 dirname | sed 's|^|./|')

# It has the newest Python alone run the code. Each half waits much.
check: export TOOLCELL_TEST_SHORT = 1
check: | deps
	@$(MAKE) --no-print-directory -j2 -Otarget check-go test-py

.PHONY: check-go left-out
check-go:
	go test -short -ldflags="-s -w" -p 4 -tags $(TAGS) -parallel 4 $(TESTFLAGS) -skip "$(NOT_HERE)" $(UNIT)

# Unit tests that check leaves out, and why. It takes as long as check.
left-out:
	@git grep -hA1 '^//test:long$$' -- '*_test.go' | sed -n 's/^func \(Test[[:alnum:]]*\).*/--- LONG: \1/p'
	@$(MAKE) -s check-go TESTFLAGS=-v | grep -B 1 '^ *--- SKIP' | grep -E 'SKIP|_test\.go:'

NOT_HERE = ^TestBounds$$|$(call marked,long)

# make vet has looked at all of it.
# Without tables for a debugging tool; the lines of a panic stay.
VETTED := -vet=off -ldflags="-s -w" -tags $(TAGS)

test: test-deps
	@$(MAKE) --no-print-directory -j3 test-images test-py test-unit # Debian's packages wait much
	@$(MAKE) --no-print-directory -j2 -Otarget test-imaged test-mainjob

test-imaged:
	go test $(VETTED) -timeout 20m $(TESTFLAGS) -skip "$(NOT_HERE)" $(IMAGED)

test-mainjob:
	go test $(VETTED) -timeout 20m -parallel 6 $(TESTFLAGS) -run "$(call marked,mainjob)" $(E2E)

test-unit: vet test-npm
	go test -p 4 $(VETTED) -timeout 20m $(TESTFLAGS) -skip "$(NOT_HERE)" $$(printf '%s\n' $(UNIT) | grep -v '$(patsubst .%,%,$(IMAGED))$$')

# With SKIP_TESTED=1 without what `make test` has run already. The race detector
# makes the unit tests take three times as long, and it cannot look into the
# binary that the end-to-end tests start.
test-all: test-deps $(if $(SKIP_TESTED),,test)
	@$(MAKE) --no-print-directory -j4 test-images test-npm test-pypi test-clients
	go test -race -p 4 $(VETTED) -timeout 20m $(TESTFLAGS) -skip "^TestBounds$$|$(call marked,alone)" $(RACED)
	@$(MAKE) --no-print-directory -j2 -Otarget test-bounds test-e2e test-collector

# Parsers are measured in processor time, so they have what the end-to-end tests leave:
# these wait much.
test-bounds:
	nice go test -p 3 -parallel 1 $(VETTED) -timeout 40m $(TESTFLAGS) -run '^TestBounds$$' $(BOUNDED)

test-e2e:
	go test $(VETTED) -timeout 40m -parallel 6 $(TESTFLAGS) -skip "$(call marked,mainjob)" $(E2E)

# What is exported, into the OpenTelemetry Collector, which is built here: a minute or
# more the first time, then seconds.
test-collector: | deps
	@mkdir -p bin
	cd .ci/collector && go build -o $(CURDIR)/bin/collector .
	TOOLCELL_TEST_COLLECTOR=$(CURDIR)/bin/collector go test -ldflags="-s -w" -tags $(TAGS),collector -count=1 $(TESTFLAGS) -run TestTheCollectorTakesSignals $(E2E)

# Without PyPI it prints a message.
test-py:
	@if .ci/venv.sh; then .venv/bin/pytest -q; else echo 'toolcell: the tests of the Python package are left out' >&2; fi

.PHONY: test-images test-npm test-pypi test-clients test-py test-unit test-imaged test-mainjob test-bounds test-e2e test-collector vet
test-images:
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) 3.14 3.13 3.11 minimal

test-npm:
	@.ci/npm.sh $(TOOLCELL_TEST_NPM)

test-pypi:
	@.ci/pypi.sh $(TOOLCELL_TEST_PYPI)

test-clients:
	@.ci/clients.sh $(TOOLCELL_TEST_CLIENTS)

vet:
	go vet -tags $(TAGS) $(PACKAGES)

# What depends on the Python in an image, on Pythons that `make test` leaves out.
PYTHONS ?= 3.10 3.12 musl
.PHONY: test-pythons
test-pythons: bin/toolcell
	@.ci/deps.sh pythons
	@TAGS=$(TAGS) .ci/pythons.sh $(PYTHONS)

test-deps:
	@.ci/deps.sh test

# The end-to-end tests in virtual machines with systemd (two hours on two processors).
test-vm: bin/toolcell test-deps
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) 3.14
	@TAGS=$(TAGS) .ci/vm/run.sh

# The table in docs/security.md, from the virtual machines and from here.
.PHONY: table
table: export TOOLCELL_REPORT = $(CURDIR)/bin/report
table:
	rm -rf $(TOOLCELL_REPORT)
	$(MAKE) test-vm
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) 3.14 3.13 3.11
	TOOLCELL_REPORT=$(TOOLCELL_REPORT)/here go test -tags $(TAGS) -count=1 -timeout 20m -run 'TestLimits|TestNeighborTakesNothing|TestEscapeBattery$$' $(E2E)
	TOOLCELL_TABLE=$(TOOLCELL_REPORT) go test -tags $(TAGS) -count=1 -run TestSecurityTable $(E2E)

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
lint: vet lint-py lint-sh lint-c lint-actions | deps
	go run $(GOLANGCI_LINT) run --build-tags $(TAGS) $(PACKAGES)

# ruff and mypy come from PyPI, as pyproject.toml pins them.
lint-py:
	@if .ci/venv.sh; then .venv/bin/ruff check && .venv/bin/mypy; else echo 'toolcell: the Python is not checked' >&2; fi

lint-sh:
	@.ci/deps.sh lint
	git grep -lE '^#!.*\b(ba)?sh$$' | xargs shellcheck

lint-c: | deps
	git ls-files -z '*.c' | xargs -0 -n 1 gcc -Wall -Wextra -Werror -fsyntax-only

# The workflows, with the shell in them.
lint-actions: | deps
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: lint lint-py lint-sh lint-c lint-actions

# Known vulnerabilities in what is compiled in; asks vuln.go.dev.
vulncheck: | deps
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -tags $(TAGS) ./...

# Runs beside podman, bubblewrap and bare Python, if they are there, and calls
# beside the SDK's client: a table, and docs/benchmarks/speed.json. Fifteen minutes.
.PHONY: bench
bench: bin/toolcell test-deps
	@.ci/deps.sh bench
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) 3.14 3.13 data
	@TOOLCELL_FIGURES=$(CURDIR)/bin/calls.json go test -tags $(TAGS),figures -count=1 -run TestCallFigures $(E2E)
	@python3 .ci/bench.py bin/toolcell $(TOOLCELL_TEST_IMAGES)/python-3.14 $(TOOLCELL_TEST_IMAGES)/python-data --calls bin/calls.json

# How long a run takes while another one has the host work for it.
.PHONY: bench-neighbor
bench-neighbor: bin/toolcell test-deps
	go test -tags $(TAGS),figures -count=1 -v -run TestNeighborFigures $(E2E)

# Runs with and without a collector. docs/benchmarks/signals.md says how builds were compared.
.PHONY: bench-signals
bench-signals: | deps
	go test -tags $(TAGS) -run '^$$' -bench 'Benchmark(Off|On)$$' -benchmem ./internal/signals

# The pictures of toolcell ui in the documents.
.PHONY: screenshots
screenshots: test-deps test-npm
	TOOLCELL_SCREENSHOTS=$(CURDIR)/docs go test -tags $(TAGS),screenshots -count=1 -run TestScreenshots $(E2E)

# What the record of runs costs: docs/benchmarks/record.md.
.PHONY: bench-record
bench-record: | deps
	go test -tags $(TAGS) -run '^$$' -bench ARecordedRun ./bridge/gate
	go test -tags $(TAGS) -run '^$$' -bench . ./bridge/record
	go test -tags $(TAGS) -run '^$$' -bench . -benchtime 3x ./bridge/record/history

# A download through the way out of a sandbox beside a direct one.
.PHONY: bench-network
bench-network: bin/toolcell test-deps
	go test -tags $(TAGS),figures -count=1 -v -run TestNetworkFigures $(E2E)

# Packages of scripts beside `uv run --with`: a table, and docs/benchmarks/packages.json. Five minutes; it needs PyPI.
.PHONY: bench-packages
bench-packages: bin/toolcell
	@python3 .ci/bench_packages.py bin/toolcell

# Whether the ratios of a short session are much worse than the kept ones.
.PHONY: bench-check
bench-check: bin/toolcell test-deps
	@.ci/deps.sh bench
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) 3.14
	@python3 .ci/bench.py bin/toolcell $(TOOLCELL_TEST_IMAGES)/python-3.14 $(TOOLCELL_TEST_IMAGES)/python-3.14 --check

# What comes from the sandbox, from registries and from config files, a minute
# each.
FUZZTIME ?= 1m
fuzz: | deps
	git grep -o --heading '^func Fuzz[A-Za-z]*' -- '*_test.go' | sed 's/^func //' | while read -r line; do \
		case $$line in \
		*.go) dir=./$${line%/*} ;; \
		?*) go test -tags $(TAGS) -run '^$$' -fuzz "^$$line\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$dir" </dev/null || exit ;; \
		esac; done

# As root also: TOOLCELL_SOAK_HOST=user, or user-one-id.
SOAK_RUNS ?= 10000
soak: test-deps
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) 3.14 3.13 3.11
	TOOLCELL_SOAK=$(SOAK_RUNS) go test -tags $(TAGS),soak -run TestSoak -count 1 -timeout 60m -v $(E2E)

# Time and memory with 100 upstream servers of 100 tools each.
.PHONY: bench-servers
bench-servers: | deps
	go test -tags $(TAGS),figures -count=1 -run TestCatalogFigures -v ./mcpproxy
	go test -tags $(TAGS) -run '^$$' -bench BenchmarkCatalog -benchmem ./mcpproxy

# How often a search finds the right tool, beside plain BM25: docs/search.md.
.PHONY: recall
recall: | deps
	@TOOLCELL_RECALL=$(CURDIR)/docs/benchmarks/recall.txt go test -tags $(TAGS) -count=1 -run TestRecall ./mcpproxy/search
	@cat docs/benchmarks/recall.txt

# What each part of the search brings: docs/benchmarks/ablation.txt.
.PHONY: ablation
ablation: | deps
	@TOOLCELL_ABLATION=$(CURDIR)/docs/benchmarks/ablation.txt go test -tags $(TAGS),figures -count=1 -run TestAblation ./mcpproxy/search
	@cat docs/benchmarks/ablation.txt

# Agents from npm without a user, with a model on loopback: 600 MB.
export TOOLCELL_TEST_PRODUCTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolcell-test/products
.PHONY: test-products
test-products: test-deps
	npm install --no-audit --no-fund --loglevel=error --prefix $(TOOLCELL_TEST_PRODUCTS) @anthropic-ai/claude-code@2.1.331 opencode-ai@1.18.33
	go test -tags $(TAGS),products -count=1 -timeout 20m -run 'TestProducts|TestHooksOfClaudeCode' -v $(E2E)

# What a client pays for, in tokens: docs/benchmarks/tokens.md.
.PHONY: tokens
tokens: | deps
	@TOOLCELL_TOKENS=$(CURDIR)/docs/benchmarks/tokens.md go test -tags $(TAGS) -count=1 -run TestTokens $(E2E)
	@cat docs/benchmarks/tokens.md

# The reference of the Python inside, from the runner's docstrings.
.PHONY: docs
docs: bin/toolcell
	bin/toolcell exec --image host -q .ci/python_api.py >bin/python-api.md
	mv bin/python-api.md docs/python-api.md

# A recording of a terminal: docs/walk.txt.
.PHONY: walk
walk: bin/toolcell bin/calendar bin/tasks
	@.ci/deps.sh walk
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) 3.14
	@.ci/npm.sh $(TOOLCELL_TEST_NPM)
	.ci/walk.sh $(TOOLCELL_TEST_IMAGES) $(TOOLCELL_TEST_NPM) docs/walk.txt

# A first pull of a large image beside podman, and skopeo with umoci.
.PHONY: bench-images
bench-images: bin/toolcell
	@.ci/deps.sh bench
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) data
	@python3 .ci/bench_images.py bin/toolcell $(TOOLCELL_TEST_IMAGES)/python-data

# Plots and tables with the packages of real images: 1.3 GB of Debian, and plotly
# from PyPI.
.PHONY: test-data
test-data: test-deps
	@.ci/deps.sh data
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) data plotly
	TOOLCELL_TEST_DATA=$(TOOLCELL_TEST_IMAGES)/python-data TOOLCELL_TEST_PLOTLY=$(TOOLCELL_TEST_IMAGES)/python-plotly go test -tags $(TAGS),data -count=1 -run 'TestFigures|TestPictures|TestTables|TestPlotly' -v $(E2E)

# Packages with compiled parts, from the real index, on every Python: a gigabyte.
.PHONY: test-packages
test-packages: export TOOLCELL_TEST_PYTHONS = 3.14 3.13 3.12 3.11
test-packages:
	@.ci/deps.sh pythons
	@.ci/images.sh $(TOOLCELL_TEST_IMAGES) $(TOOLCELL_TEST_PYTHONS)
	go test -tags $(TAGS),wheels -count=1 -timeout 40m -run 'TestPackages' -v ./rootfs/packages ./rootfs/runtimes $(E2E)

# Builds only what is not there: root, under sudo, may have no Go.
install:
	@test -x bin/toolcell || $(MAKE) bin/toolcell
	install -D -m 755 bin/toolcell $(DESTDIR)$(PREFIX)/bin/toolcell
	@$(MAKE) -s install-extras BIN=bin/toolcell
	@test -n "$(DESTDIR)" || .ci/installed.sh $(PREFIX)/bin

# The man page, and completions by a program that can be run here.
BIN ?= bin/toolcell
ZSH ?= site-functions
SHARE = $(DESTDIR)$(PREFIX)/share
EXTRAS = bash-completion/completions/toolcell zsh/$(ZSH)/_toolcell fish/vendor_completions.d/toolcell.fish man/man1/toolcell.1.gz
.PHONY: install-extras
install-extras:
	install -d $(dir $(addprefix $(SHARE)/,$(EXTRAS)))
	$(BIN) completion bash >$(SHARE)/bash-completion/completions/toolcell
	$(BIN) completion zsh >$(SHARE)/zsh/$(ZSH)/_toolcell
	$(BIN) completion fish >$(SHARE)/fish/vendor_completions.d/toolcell.fish
	gzip -9nc cmd/toolcell/toolcell.1 >$(SHARE)/man/man1/toolcell.1.gz

.PHONY: uninstall
uninstall:
	@$(if $(DESTDIR),,.ci/uninstalling.sh $(PREFIX)/bin/toolcell)
	rm -f $(DESTDIR)$(PREFIX)/bin/toolcell $(addprefix $(SHARE)/,$(EXTRAS))

# Tarballs and packages for dpkg, rpm, pip and npm, in dist, and SHA256SUMS. ARCHS="amd64
# arm64" needs a cross compiler, which the script names.
DIST ?= dist
ARCHS ?= $(shell go env GOHOSTARCH)
.PHONY: release
release: | deps
	@.ci/release.sh $(DIST) $(VERSION) $(TAGS) $(ARCHS)

# What a release is made of, installed in each way on two Debians, and upgraded to the next
# version: five minutes on two processors, and longer the first time. What is not committed
# is left out. WAYS="uvx npx" are only those.
.PHONY: test-install
test-install: | deps
	@.ci/deps.sh test
	@.ci/released.sh bin/install/this $(VERSION:-dev=)
	@.ci/released.sh bin/install/next next
	@.ci/install.sh bin/install/this bin/install/next bookworm trixie $(if $(WAYS),-- $(WAYS))
	@$(if $(WAYS),,.ci/install/source.sh)

# The same bytes from two systems and two folders.
.PHONY: test-release
test-release: | deps
	@.ci/deps.sh test
	@.ci/twice.sh

clean:
	rm -rf bin dist .venv .mypy_cache .ruff_cache
