# Everything is set up here: a machine needs Python 3.11 or newer with pip, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-slow fuzz bench lint setup clean
help:
	@echo "make demo       train bandit-quick, judge it, write its report, compare the pretrained A3P5 team, draw an episode (runs/demo)"
	@echo "make setup      a virtual environment with everything in it (.venv)"
	@echo "make test       lint, types and tests"
	@echo "make test-slow  the long statistical runs"
	@echo "make fuzz       6,000 malformed inputs, of every kind that is read (results/fuzz.json; about 5 minutes)"
	@echo "make bench      speed, as ratios (results/bench.json)"

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "icmape needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

setup: $(STAMP)

demo: setup
	$(BIN)/icmape train bandit-quick --out runs/demo --overwrite
	$(BIN)/icmape evaluate runs/demo --episodes 10000 --out runs/demo/evaluation.json
	@echo "curves: runs/demo/curves.png   team: runs/demo/team-215.safetensors"
	$(BIN)/icmape report runs/demo --out runs/demo/report.html --episodes 5000 --sweep-episodes 200
	@echo "The pretrained team for the paper's A3P5, beside what needs no learning:"
	$(BIN)/icmape compare bandit-a3p5 --baselines open-loop open-loop-local-stop local-adaptive --baseline-episodes 10000 \
		--out runs/demo/a3p5
	@echo "An episode of the pretrained team for source localization:"
	$(BIN)/icmape play signal --world 10 --out runs/demo/signal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder

test-slow: setup
	$(BIN)/python -m pytest -m slow

fuzz: setup
	$(BIN)/python -m fuzz --out results/fuzz.json --page docs/reference/robustness.md

bench: setup
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) build dist *.egg-info .jax_cache .mypy_cache .pytest_cache .ruff_cache
