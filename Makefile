# Everything is set up here: a machine needs Python 3.11 or newer with pip, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
STAMP := $(VENV)/.installed
SOURCES := $(VENV)/sources

.PHONY: help demo test tests test-slow fuzz bench site dist lint setup sources clean
help:
	@echo "make demo       train bandit-quick, write its report and an app to play in, compare the A3P5 team, draw an episode (runs/demo)"
	@echo "make setup      a virtual environment with everything in it (.venv)"
	@echo "make test       lint, types and tests"
	@echo "make test-slow  the long statistical runs"
	@echo "make fuzz       6,000 malformed inputs, of every kind that is read (results/fuzz.json; about 5 minutes)"
	@echo "make bench      speed, as ratios (results/bench.json)"
	@echo "make dist       wheels and source archives of icmape and icmape-agent (dist), checked and installed"
	@echo "make site       the documentation as a site, with links checked (site/index.html)"

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "icmape needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # on all cores; some packages hold templates
	@touch $(STAMP)

setup: $(STAMP)

sources: $(SOURCES)

# JaxMARL's own tests are in its source archive, and not in its wheel.
$(SOURCES): $(STAMP)
	@version=$$($(BIN)/python -c 'from importlib.metadata import version; print(version("jaxmarl"))') && \
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary jaxmarl \
		--dest $(SOURCES) "jaxmarl==$$version" && touch $(SOURCES) || echo "JaxMARL's source cannot be had: its own tests are skipped"

demo: setup
	$(BIN)/icmape train bandit-quick --out runs/demo --overwrite
	$(BIN)/icmape evaluate runs/demo --episodes 10000 --out runs/demo/evaluation.json
	$(BIN)/icmape report runs/demo --out runs/demo/report.html --episodes 5000 --sweep-episodes 200
	$(BIN)/icmape app runs/demo/team-215.safetensors signal nitrate-synthetic --names bandit source nitrate --out runs/demo/app.html
	@echo "Open in a browser: runs/demo/report.html (how good the team is) and runs/demo/app.html (play beside it)."
	@echo "The pretrained team for the paper's A3P5, beside what needs no learning:"
	$(BIN)/icmape compare bandit-a3p5 --baselines open-loop open-loop-local-stop local-adaptive --baseline-episodes 10000 \
		--out runs/demo/a3p5
	@echo "An episode of the pretrained team for source localization:"
	$(BIN)/icmape play signal --world 10 --out runs/demo/signal --animate runs/demo/signal/episode.svg
	@echo "Done. Open in a browser:"
	@echo "  runs/demo/report.html         how good the team is"
	@echo "  runs/demo/app.html            play beside it"
	@echo "  runs/demo/a3p5/comparison.png accuracy against rounds, beside rules without learning"
	@echo "  runs/demo/signal/episode.svg  an episode of source localization"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

test: lint tests

tests: $(SOURCES)
	$(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-slow: setup
	$(BIN)/python -m pytest -m slow

fuzz: setup
	$(BIN)/python -m fuzz --out results/fuzz.json --page docs/reference/robustness.md

bench: setup
	$(BIN)/python -m benchmarks.run

site: setup
	$(BIN)/python -m tools.check_links
	rm -rf site
	$(BIN)/sphinx-build -q -W --keep-going -c tools/site -d build/doctrees . site
	$(BIN)/python -m tools.check_built_links site
	$(BIN)/python -m tools.check_offline site
	@echo "Open site/index.html in a browser: no server, no network."

dist: setup
	$(BIN)/python -m tools.check_wheel --dist dist

clean:
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache
