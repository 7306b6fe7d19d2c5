# Each target sets up .venv from pinned requirements when that is missing or out of date, then does its job.
# Needs Python 3.11 or later and nothing else; the page is built, linted and tested where Node.js 20.19 or later is.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
TESTABLE := .venv/testable
NODE := tests/server/node
BROWSER := tests/browser
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: setup page run demo test bench lint lock sdl graphiql

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sapwood needs Python 3.11 or later; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv from requirements.lock"
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) install --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(TESTABLE): $(READY) tests/requirements.lock
	@$(PIP) install --requirement tests/requirements.lock
	@touch $@

page:
	@scripts/page.sh build

run: setup page
	@$(BIN)/sapwood serve

demo: setup page
	@$(BIN)/sapwood demo

# Without Node the tests that need it are left out, except in CI, where they fail.
%/node_modules/.package-lock.json: %/package-lock.json
	@cd $* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

test: $(TESTABLE) $(if $(shell command -v npm),$(NODE:=/node_modules/.package-lock.json) $(BROWSER:=/node_modules/.package-lock.json))
	@$(BIN)/python -m pytest
	@scripts/page.sh test

bench: $(TESTABLE)
	@$(BIN)/python -m tests.bench

lint: $(TESTABLE)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@scripts/page.sh lint

sdl: setup
	@$(BIN)/python scripts/print_sdl.py > schema/schema.graphql

# Needs Node. Builds server/static/graphiql anew, from the versions that scripts/graphiql pins.
graphiql: scripts/graphiql/node_modules/.package-lock.json
	@cd scripts/graphiql && npm run --silent build

# Pins what pyproject.toml asks for, as the newest versions of today.
lock:
	@$(PYTHON) scripts/lock.py
