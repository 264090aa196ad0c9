# Two commands set everything up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal
ALL := not slow and not gpu and not wiki and not spark
READY := .venv/ready
# Many commands start in the tests: what they import is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help env demo test test-all slow-test fault-test gpu-test wiki-test warehouse-test hosts-test check format tree numbers docs pictures bench clean

help:                ## Show these targets.
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

env: $(READY)        ## Make the environment in .venv.

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "unalike needs Python 3.11, 3.12 or 3.13; name one with 'make PYTHON=python3.12 …'"; exit 1; }
	@echo "making the environment in .venv (once; a minute or two)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[dev]' 2>&1 | { grep -v '^WARNING: Location' || true; }
	@$(BIN)/python -c 'import unalike, pytest' && touch $@

demo: env            ## Show what unalike does, on a generated graph.
	@$(BIN)/unalike demo

test: env            ## Run the tests without the long, documentation, browser and host tests.
	@$(PYTEST)

test-all: env        ## Run these and the long, documentation, browser and host tests.
	@$(PYTEST) -m '$(ALL)'

slow-test: env       ## Run the tests that take minutes.
	@$(BIN)/python -m pytest -m slow

fault-test: env      ## Run thousands of broken inputs of every kind; takes minutes.
	@$(PYTEST) -m slow tests/faults

gpu-test: env        ## Run the tests of the CUDA kernels; needs a GPU.
	@$(BIN)/python -m pytest -m gpu tests/gpu

wiki-test: env       ## Run the tests against a real MediaWiki; needs Debian's mediawiki.
	@$(BIN)/python -m pytest -m wiki -rs tests/oracles

warehouse-test: env  ## Run the tests of Spark; needs Java 17, and installs PySpark.
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[spark]'
	@$(BIN)/python -m pytest -m spark tests/contracts tests/unit/importing

hosts-test: env      ## Run the tests on several hosts, each a network namespace; needs root.
	@$(BIN)/python -m pytest -m hosts -rs tests/hosts

check: env           ## Format, lint, types and all tests: what CI runs.
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(MAKE) --no-print-directory test-all

format: env          ## Rewrite the code in the house style.
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

tree: env            ## Rewrite the tree of files in ARCHITECTURE.md.
	@$(BIN)/python scripts/tree.py

numbers: env         ## Rewrite the numbers of README, docs and results from stored runs.
	@$(BIN)/python scripts/page_numbers.py

docs: env            ## Build the documentation into site-docs; open site-docs/index.html.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

pictures: env        ## Draw the pictures of the documentation again; needs the datasets.
	@$(BIN)/unalike figure examples --out docs/pictures/examples.svg
	@$(BIN)/unalike figure imbalance --out docs/pictures/imbalance.svg
	@$(BIN)/unalike figure compatibility texas chameleon arxiv-year --out docs/pictures/compatibility.svg
	@$(BIN)/unalike figure degrees chameleon --out docs/pictures/degrees.svg
	@mkdir -p build
	@$(BIN)/unalike results import results/runs.jsonl.gz --results sqlite:///build/results.db
	@$(BIN)/unalike figure leaderboard --results sqlite:///build/results.db --out docs/pictures/leaderboard.svg
	@$(BIN)/python scripts/layers_picture.py

bench: env           ## Measure speed and memory; prints tables, takes half an hour.
	@$(BIN)/unalike bench engine
	@$(BIN)/python benchmarks/import_edges.py
	@$(BIN)/python benchmarks/measures.py
	@$(BIN)/python benchmarks/twins.py

clean:               ## Remove the environment and caches.
	@rm -rf .venv .mypy_cache .ruff_cache .hypothesis build dist site-docs
