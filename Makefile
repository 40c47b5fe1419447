# Everything is set up here: a machine needs Python 3.11 or newer with pip, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-slow bench lint setup clean
help:
	@echo "make demo       train bandit-quick, evaluate it on 10,000 worlds, draw its curves (runs/demo)"
	@echo "make test       lint, types and tests"
	@echo "make test-slow  the long statistical runs"
	@echo "make bench      speed, as ratios (results/bench.json)"

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "icmape needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

setup: $(STAMP)

demo: setup
	$(BIN)/icmape train bandit-quick --algorithm td3 --out runs/demo --overwrite
	$(BIN)/icmape evaluate runs/demo --episodes 10000 --out runs/demo/evaluation.json
	@echo "curves: runs/demo/curves.png   team: runs/demo/team-215.safetensors"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

bench: setup
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
