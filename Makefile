# Everything a fresh machine needs besides Python >= 3.11, Java >= 17 and make.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: set-up demo test test-long test-all bench soak lint docs docs-pages format requirements clean
.DEFAULT_GOAL := demo

$(BIN)/groupquake: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "groupquake needs Python 3.11 or newer; give one with: make PYTHON=python3.12" >&2; exit 64; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/groupquake dev class-archive || true  # without it Spark starts more slowly
	@touch $@

set-up: $(BIN)/groupquake  ## the environment, and nothing more

demo: $(BIN)/groupquake  ## three real brokers, load, chaos, comparison, report
	$(BIN)/groupquake run demo

test: $(BIN)/groupquake  ## the tests, real clusters included, but for those marked long or exhaustive
	$(BIN)/pytest --numprocesses 2 -m "not long and not exhaustive"

test-long: $(BIN)/groupquake  ## what takes minutes: containers, whole nights, Spark clusters
	$(BIN)/pytest --numprocesses 2 --dist loadscope -m long

test-all: $(BIN)/groupquake  ## the long ones, the whole library in containers, all mutants on all seeds
	$(BIN)/pytest --numprocesses 2 --dist loadscope -m "long or exhaustive"

bench: $(BIN)/groupquake  ## goals beside figures: about 25 minutes; one row: make bench ROWS=verdict
	@mkdir -p build
	$(BIN)/python -m benchmarks.goals $(foreach row,$(ROWS),--rows $(row)) --json build/bench.json --page build/bench.md

soak: $(BIN)/groupquake  ## 300 members and a fault a minute, for an hour: do our processes grow?
	$(BIN)/groupquake dev soak

lint: $(BIN)/groupquake  ## what CI checks besides the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(BIN)/groupquake  ## the pages as a site: build/docs/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-pages: $(BIN)/groupquake  ## write anew the pages that are made from the code
	$(BIN)/python docs/generate.py

format: $(BIN)/groupquake
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: $(BIN)/groupquake  ## pin anew, with hashes
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --extra connect --extra otel --extra dev --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file requirements.txt pyproject.toml

clean:
	rm -rf $(VENV) build *.egg-info
