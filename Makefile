# Each target first sets up .venv from the locks if it is missing or out of date.
# Python 3.11 or later is all it takes. The page is built, linted and tested if Node.js 20.19 or later is installed.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
TESTABLE := .venv/testable
NODE := tests/server/node
BROWSER := tests/browser
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# Test processes; each starts a database server and Sapwood servers of its own.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

# The processes that tests start import everything anew; cached bytecode makes that faster.
unexport PYTHONDONTWRITEBYTECODE

# What `make check` runs: the pure parts in full, the contract suite on SQLite, and the two transports on one server.
CHECKED := $(wildcard tests/test_*.py) tests/storage/views tests/schema tests/contract \
	tests/server/transport/test_http.py tests/server/transport/test_sockets.py

.PHONY: setup page run demo check test coverage bench lint format lock sdl graphiql

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sapwood needs Python 3.11 or later; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv from requirements.lock"
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(TESTABLE): $(READY) tests/requirements.lock
	@$(PIP) install --require-hashes --requirement tests/requirements.lock
	@touch $@

page:
	@scripts/page.sh build

run: setup page
	@$(BIN)/sapwood serve

demo: setup page
	@$(BIN)/sapwood demo

%/node_modules/.package-lock.json: %/package-lock.json
	@cd $* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

# Lint, types and a fast part of the tests: under 3 minutes on 2 cores.
check: lint
	@$(PYTEST) $(CHECKED) -k "not mongodb"

# Every test: under 30 minutes on 2 cores. Tests that need Node or Chromium are skipped without them, except in CI.
# HYPOTHESIS_PROFILE=long draws more examples for property tests.
test: $(TESTABLE) $(if $(shell command -v npm),$(NODE:=/node_modules/.package-lock.json) $(BROWSER:=/node_modules/.package-lock.json))
	@$(PYTEST)
	@scripts/page.sh test

# Every test again, measuring which lines of the product they run, in all processes that they start.
coverage: $(TESTABLE)
	@rm -rf build/coverage
	@mkdir -p build/coverage
	@$(BIN)/coverage run -m pytest --numprocesses $(WORKERS) --dist worksteal
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: $(TESTABLE)
	@$(BIN)/python -m tests.bench

lint: $(TESTABLE)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@scripts/page.sh lint

format: $(TESTABLE)
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format --quiet .

sdl: setup
	@$(BIN)/python scripts/print_sdl.py > schema/schema.graphql

# Needs Node. Rebuilds server/static/graphiql from the versions that scripts/graphiql pins.
graphiql: scripts/graphiql/node_modules/.package-lock.json
	@cd scripts/graphiql && npm run --silent build

# Pins the newest versions that pyproject.toml allows: for a server, and for tests and linters on top of that.
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate

lock: export UV_CUSTOM_COMPILE_COMMAND := make lock
lock: $(TESTABLE)
	@$(COMPILE) pyproject.toml --group build --output-file requirements.lock
	@$(COMPILE) pyproject.toml --group build --extra test --extra lint --constraint requirements.lock \
		--output-file tests/requirements.lock
