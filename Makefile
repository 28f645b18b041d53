# BurrowMQ: every command that a developer, an operator of a checkout, or continuous integration needs.
# Nothing here reads or writes the home directory; everything is made in .venv and below build/.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
RUN_STAMP := $(VENV)/.stamp-run
DEV_STAMP := $(VENV)/.stamp-dev
LAYERS_STAMP := $(VENV)/.stamp-layers
SPARK_STAMP := $(VENV)/.stamp-spark
SPARK_OLDEST_STAMP := $(VENV)/.stamp-spark-oldest
PYX := $(wildcard protocol/codec/_codec_c.pyx protocol/codec/*.pxi storage/record/_record_c.pyx storage/files/_sync_c.pyx broker/machine/_pools_c.pyx broker/turn/_send_c.pyx build_stamp.pxi)

# Directories that are checked; a directory that does not exist yet is left out.
PACKAGES := $(wildcard protocol storage config cluster broker management offline embedded cli pyspark_amqp pyspark_amqp_jobs pyspark_amqp_store)
# Spark's side is a distribution of its own, made from the same tree.
SPARK_DISTRIBUTION := distributions/pyspark-amqp
LINTED := $(PACKAGES) $(wildcard burrowmq/*.py) $(wildcard bench examples tests scripts) setup.py

PIP := $(PY) -m pip --disable-pip-version-check --quiet --no-input
PYTEST := $(PY) -m pytest -q
# What pip does for an installed package: without it a first start, or every start where PYTHONDONTWRITEBYTECODE is
# set, translates 200 modules again (0.2 s and 6 MB).
BYTECODE = $(PY) -m compileall -q burrowmq $(PACKAGES)
# The same for the tests, whose asserts pytest rewrites: else each of the processes of a first run does it (10 s each).
# A test that cannot be loaded is told by the run.
TESTS_BYTECODE = for part in tests/unit "tests --ignore=tests/unit"; do $(PYTEST) --collect-only $$part >/dev/null 2>&1 & done; wait
# Empty is unset: where it is set, each run of the tests (each of their processes) reads and rewrites 700 files again.
export PYTHONDONTWRITEBYTECODE :=
ARGS ?=
SEED ?= 0
IMAGE ?= burrowmq

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- set-up ------------------------------------------------------------------------------------

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "BurrowMQ needs Python 3.11 or newer; $(PYTHON) is not. Name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Locked versions with their hashes, then the checkout itself; compiled modules are optional by design.
$(RUN_STAMP): $(PY) requirements.lock pyproject.toml setup.py $(SPARK_DISTRIBUTION)/pyproject.toml $(PYX)
	$(PIP) install --require-hashes --requirement requirements.lock
	@log=$$(mktemp); \
	  if $(PIP) install --no-deps --no-build-isolation --editable . --editable $(SPARK_DISTRIBUTION) >$$log 2>&1; \
	  then rm -f $$log; else cat $$log; rm -f $$log; exit 1; fi
	@$(PY) -m scripts.which_codec
	@$(BYTECODE)
	@touch $@

$(DEV_STAMP): $(RUN_STAMP) requirements-dev.lock
	$(PIP) install --require-hashes --requirement requirements-dev.lock
	@$(TESTS_BYTECODE)
	@touch $@

.PHONY: setup
setup: $(DEV_STAMP) $(LAYERS_STAMP) ## make .venv: locked dependencies, tools, compiled modules

# Spark's environment is its own: 700 MB that no broker needs, and pyarrow would change what its tests see.
$(SPARK_STAMP): $(PY) requirements-spark.lock
	$(PYTHON) -m venv $(VENV)/spark
	$(VENV)/spark/bin/python -m pip --disable-pip-version-check --quiet --no-input install \
	  --require-hashes --requirement requirements-spark.lock
	@pwd >"$$($(VENV)/spark/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/checkout.pth"
	@touch $@

.PHONY: setup-spark
setup-spark: $(SPARK_STAMP) ## make .venv/spark: pyspark, pyarrow and what their tests need (700 MB)

# Only Spark is another there: everything else is what .venv/spark has, which comes behind it on the path.
$(SPARK_OLDEST_STAMP): $(SPARK_STAMP) requirements-spark-oldest.lock
	$(PYTHON) -m venv --clear $(VENV)/spark-oldest
	$(VENV)/spark-oldest/bin/python -m pip --disable-pip-version-check --quiet --no-input install \
	  --require-hashes --requirement requirements-spark-oldest.lock
	@{ pwd; $(VENV)/spark/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; } \
	  >"$$($(VENV)/spark-oldest/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/behind.pth"
	@touch $@

.PHONY: setup-spark-oldest
setup-spark-oldest: $(SPARK_OLDEST_STAMP) ## make .venv/spark-oldest: the oldest Spark that is taken, for a part of the tests (450 MB)

.PHONY: build
build: $(RUN_STAMP) ## compile the optional modules in place again
	$(PY) setup.py --quiet build_ext --inplace --force
	@$(PY) -m scripts.which_codec
	@$(BYTECODE)

.PHONY: lock
lock: $(DEV_STAMP) ## resolve the dependencies again and rewrite both lock files
	$(PY) -m scripts.lock

.PHONY: run
run: $(RUN_STAMP) ## run the broker in the foreground on this machine, data in ./data (ARGS="--set key=value")
	@exec $(BIN)/burrowmq-server --data-dir data $(ARGS)

# ---- checks (about a minute together) -----------------------------------------------------------

.PHONY: fmt
fmt: $(DEV_STAMP) ## format the code and apply the safe fixes
	$(BIN)/ruff format $(LINTED)
	$(BIN)/ruff check --fix $(LINTED)

.PHONY: fmt-check
fmt-check: $(DEV_STAMP) ## is the code formatted? (`make fmt` does it)
	@$(BIN)/ruff format --check --quiet --output-format concise $(LINTED) || { echo "fmt-check: run 'make fmt'"; exit 1; }

.PHONY: lint
lint: $(DEV_STAMP) ## ruff, every rule but the justified exceptions
	$(BIN)/ruff check --quiet $(LINTED)

.PHONY: types
types: $(DEV_STAMP) ## mypy --strict on every package
	$(BIN)/mypy --no-error-summary

# The layer check has an environment of its own: what it brings would be loaded into the broker (pyproject.toml).
$(LAYERS_STAMP): $(PY) requirements-layers.lock
	$(PYTHON) -m venv $(VENV)/layers
	$(VENV)/layers/bin/python -m pip --disable-pip-version-check --quiet --no-input install \
	  --require-hashes --requirement requirements-layers.lock
	@touch $@

.PHONY: layers
layers: $(LAYERS_STAMP) ## import contracts between and inside the packages
	@mkdir -p build; $(VENV)/layers/bin/lint-imports --no-cache >build/layers.log 2>&1 \
	  || { sed -n '/^Contracts: /,$$p' build/layers.log; \
	       echo "layers: move the import, or give a new module its place in [tool.importlinter] of pyproject.toml"; exit 1; }

.PHONY: tidy
tidy: $(DEV_STAMP) ## limits on module and function size, docstrings, mirrored tests, generated files
	$(PYTEST) tests/architecture

# Two halves of about the same length, each a process that collects its own: no worker collects everything.
QUICK := $(PYTEST) -m "not slow and not long"
QUICK_FIRST := tests/unit/management tests/unit/cli tests/regression

.PHONY: quick-first
quick-first: $(DEV_STAMP) ## the first half of quick: management, command line, and what went wrong once
	@$(QUICK) $(QUICK_FIRST)

.PHONY: quick-second
quick-second: $(DEV_STAMP) ## the second half of quick: all others
	@$(QUICK) tests/unit tests/regression $(QUICK_FIRST:%=--ignore=%)

.PHONY: quick
quick: $(DEV_STAMP) ## unit tests without the slow ones
	@$(MAKE) --no-print-directory -j 2 --output-sync=target quick-first quick-second

.PHONY: check
check: $(DEV_STAMP) $(LAYERS_STAMP) ## all of the above, about a minute (QUICK=no: without the quick tests)
	@$(MAKE) --no-print-directory -j 2 --output-sync=target fmt-check lint types layers tidy $(if $(filter no,$(QUICK)),,quick-first quick-second)

# ---- tests -----------------------------------------------------------------------------------------

.PHONY: test
test: $(DEV_STAMP) ## all tests, compiled and interpreted side by side, a quarter of an hour
	@$(PY) -m scripts.both_speeds --with-spark -m "not long and not differential" $(ARGS)

.PHONY: test-spark
test-spark: $(DEV_STAMP) ## the tests of pyspark_amqp, with Spark (Java 17 or newer)
	@$(PY) -m scripts.spark_tests -m "not long and not differential" $(ARGS)

.PHONY: test-long
test-long: $(DEV_STAMP) ## what takes longer: long tests, asyncio's debug mode, coverage of the interpreted run
	$(PYTEST) -m "long and not differential" --timeout 3600 tests $(ARGS)
	@$(PY) -m scripts.examples
	@$(PY) -m scripts.spark_tests --if-possible -m long -v --session-timeout 2700 $(ARGS)
	PYTHONASYNCIODEBUG=1 $(PYTEST) -m "not long and not differential" tests/unit tests/regression tests/integration $(ARGS)
	BURROWMQ_PURE=1 $(BIN)/coverage run -m pytest -q -m "not long and not differential" tests/unit tests/regression tests/property $(ARGS)
	$(BIN)/coverage report

.PHONY: test-examples
test-examples: $(DEV_STAMP) ## the suites of examples/, each in an environment of its own (from the package index, once)
	@$(PY) -m scripts.examples $(ARGS)

.PHONY: own-coverage
own-coverage: $(DEV_STAMP) ## each module's coverage by its own tests beside that by all, worst first (ARGS="--last --write")
	$(PY) -m scripts.own_coverage $(ARGS)

.PHONY: property
property: $(DEV_STAMP) ## property tests only (Hypothesis)
	$(PYTEST) --hypothesis-seed $(SEED) tests/property $(ARGS)

.PHONY: fuzz
fuzz: $(DEV_STAMP) ## mutated and grammar-made frames against a live broker
	$(PYTEST) -m "slow or long or not slow" --timeout 3600 tests/fuzz $(ARGS)

.PHONY: crash
crash: $(DEV_STAMP) ## kill -9 cycles and simulated power cuts
	$(PYTEST) -m "slow or long or not slow" --timeout 3600 tests/crash $(ARGS)

.PHONY: simulate
simulate: $(DEV_STAMP) ## SEEDS=n runs of the simulated machine on JOBS=n processes, from seed FIRST=n on; FAULTS=1: calls to the disk fail; NEAR=1: near plans that failed once
	$(PY) -m tests.simulation.machine --seeds $(or $(SEEDS),1000) --jobs $(or $(JOBS),$(shell nproc)) --first $(or $(FIRST),0) $(if $(FAULTS),--faults) $(if $(NEAR),--near)

.PHONY: mutants
mutants: $(DEV_STAMP) build/mutation-reach.json ## does the simulated machine find the mistakes of a list? hours; goes on where it was (ARGS="--kind durability")
	@jobs=$(or $(JOBS),$(shell nproc)); part=0; while [ $$part -lt $$jobs ]; do \
	  $(PY) -m tests.mutation --part $$part/$$jobs $(ARGS) & part=$$((part + 1)); done; wait
	$(PY) -m tests.mutation --report $(ARGS)

build/mutation-reach.json: $(DEV_STAMP)
	$(PY) -m tests.mutation.reach plans
	$(PY) -m tests.mutation.reach tests

.PHONY: conformance
conformance: $(DEV_STAMP) ## wire scripts, one per rule of the protocol
	$(PYTEST) -m "not differential" tests/conformance $(ARGS)

.PHONY: differential
differential: $(DEV_STAMP) ## the same scenarios on an installed RabbitMQ and here
	$(PYTEST) -m differential --timeout 3600 tests/differential $(ARGS)
	@$(PY) -m scripts.spark_tests --if-possible -m differential --timeout 3600 $(ARGS)

# ---- figures ----------------------------------------------------------------------------------------

.PHONY: bench
bench: $(DEV_STAMP) ## the main rows beside RabbitMQ, minutes
	$(PY) -m bench run $(ARGS)

.PHONY: bench-full
bench-full: $(DEV_STAMP) ## every row of the README's tables
	$(PY) -m bench run --full $(ARGS)

.PHONY: bench-compare
bench-compare: $(DEV_STAMP) ## the main rows here and at REF=<commit>, interleaved
	$(PY) -m bench compare --ref "$(or $(REF),HEAD~1)" $(ARGS)

.PHONY: bench-spark
bench-spark: $(DEV_STAMP) $(SPARK_STAMP) ## rates of Spark's source and sink beside pika, minutes (Java 17)
	BURROWMQ_TEST_PYTHON="$(CURDIR)/$(PY)" PYSPARK_PYTHON="$(CURDIR)/$(VENV)/spark/bin/python" \
	  $(VENV)/spark/bin/python -m bench.spark $(ARGS)

.PHONY: bench-table
bench-table: $(DEV_STAMP) ## put the latest figures into docs/measured.md and README.md
	$(PY) -m scripts.bench_table $(FILE)

# ---- the rest ---------------------------------------------------------------------------------------

.PHONY: docs
docs: $(RUN_STAMP) ## rewrite the files that are generated from the configuration schema
	$(PY) -m burrowmq.config.example

.PHONY: vendor
vendor: $(RUN_STAMP) ## fetch the UI's three libraries again, as scripts/vendor.py pins them
	$(PY) -m scripts.vendor

.PHONY: test-browser
test-browser: $(DEV_STAMP) ## the management UI in Chromium (apt-get install chromium)
	$(BIN)/pip install --quiet --requirement requirements-browser.in
	$(PYTEST) tests/browser $(ARGS)

.PHONY: cluster-test
cluster-test: $(DEV_STAMP) ## streams of JetStream on three real nats-servers, minutes (Go, or BURROWMQ_NATS_SERVER)
	@$(PY) -m bench.nats_servers
	$(PYTEST) tests/cluster $(ARGS)

NATSD_SERVER := github.com/nats-io/nats-server/v2

build/natsd: $(wildcard cluster/natsd/* cluster/natsd/server/*)
	@command -v go >/dev/null || { echo "natsd: building it needs Go (go.dev/dl)"; exit 1; }
	@command -v patch >/dev/null || { echo "natsd: building it needs patch(1)"; exit 1; }
	@rm -rf build/nats-server && mkdir -p build
	cd cluster/natsd && go mod download $(NATSD_SERVER) && cp -R "$$(go list -m -f '{{.Dir}}' $(NATSD_SERVER))" ../../build/nats-server
	chmod -R u+w build/nats-server
	find build/nats-server -name '*_test.go' -delete
	cp cluster/natsd/server/*_test.go build/nats-server/server/
	cat cluster/natsd/damaged-files.patch cluster/natsd/async-flush.patch | patch --quiet --strip=1 --fuzz=0 --directory=build/nats-server
	cp cluster/natsd/go.mod build/natsd.mod && cp cluster/natsd/go.sum build/natsd.sum
	go mod edit -replace=$(NATSD_SERVER)=../../build/nats-server build/natsd.mod
	cd cluster/natsd && CGO_ENABLED=0 GOFLAGS="-p=1 -trimpath -modfile=../../build/natsd.mod" go build -o ../../build/natsd .

.PHONY: natsd
natsd: build/natsd ## build/natsd: nats-server for a LAN, elections in a second, one write a message, damage bounded (Go)

.PHONY: changelog
changelog: $(RUN_STAMP) ## assemble changes/ into CHANGELOG.md (VERSION=x.y.z)
	$(PY) -m scripts.changelog "$(VERSION)"

.PHONY: spark-zip
spark-zip: $(RUN_STAMP) ## pyspark_amqp as one file for --py-files: build/pyspark_amqp.zip
	@$(PY) -m scripts.spark_zip

.PHONY: wheels
wheels: $(RUN_STAMP) ## the wheels of both distributions in dist/: burrowmq and pyspark-amqp
	@rm -rf dist build/lib* build/bdist.* $(SPARK_DISTRIBUTION)/build
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist . ./$(SPARK_DISTRIBUTION)
	@ls dist

.PHONY: image
image: ## build the container image
	docker build --tag $(IMAGE) .

.PHONY: clean
clean: ## remove what was built, keep .venv and data
	rm -rf build dist $(SPARK_DISTRIBUTION)/build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	rm -f protocol/*/*.so storage/*/*.so broker/*/*.so $(RUN_STAMP)
