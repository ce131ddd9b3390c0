# `make help` lists the targets; each makes what it needs first.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PAGES  := $(VENV)/.site
LITE   := $(VENV)/.lite

TORCH  ?= torch==2.13.0
MODELS ?= transformers==5.23.0
FUZZ   ?= 100000

# A hundred processes import the course: compiled once, each is ready half a second earlier.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help lab test unit test-all fuzz snapshots regenerate bench reset lint types lock \
    site site-serve site-zip site-test lite lite-serve lite-test

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'Options go in ARGS: make test ARGS="-k 01", make lab ARGS="--port 8899"'

lab: $(READY) ## JupyterLab at the first notebook
	$(BIN)/python tools/lab.py $(ARGS)

test: $(READY) ## everything: ruff, mypy, unit tests, notebooks under strict nbval, browser
	$(BIN)/python tools/test.py $(ARGS)

unit: $(READY) ## unit tests and doctests alone
	$(BIN)/python -m pytest $(ARGS)

test-all: $(READY) ## the same as test, with PyTorch and transformers; TORCH may name another build
	$(BIN)/python -m pip install --quiet --constraint requirements.lock $(TORCH) $(MODELS)
	$(MAKE) test

fuzz: $(READY) ## 100,000 calls of the formulas with good and hostile values; FUZZ=7 makes 7
	FUZZ=$(FUZZ) $(BIN)/python -m pytest -k "fuzz or a_simulation_gives" $(ARGS)

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

types: $(PAGES) ## pyright on what a user writes, tests/user_types.py
	site/node_modules/.bin/pyright --pythonpath $(BIN)/python

snapshots: $(READY) ## write what readers read into tests/words, and review the diff
	$(BIN)/python -m tests.snapshots

regenerate: $(READY) ## run all notebooks and write their outputs; CHECK=1 tells which are stale
	$(BIN)/python tools/regenerate.py $(if $(CHECK),--check) $(ARGS)

bench: $(READY) ## speed, side by side
	$(BIN)/python -m pytest tools/bench.py -o addopts= --benchmark-only \
	    --benchmark-columns=min,median,iqr,rounds $(ARGS)

reset: ## a notebook as it was, yours kept beside it: NOTEBOOK=03_duration
	@$(PYTHON) teaching/reset.py "$(NOTEBOOK)"

lock: $(READY) ## pin the dependencies again, after a change of pyproject.toml
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-annotate --no-header \
	    --extra notebooks --group dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-annotate --no-header \
	    --constraint requirements.lock --group site -o site/requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-annotate --no-header \
	    --constraint requirements.lock --constraint site/requirements.lock \
	    --group lite -o site/lite-requirements.lock

site: $(PAGES) ## the pages, into build/site; needs npm
	$(BIN)/python site/build.py

site-serve: site ## the pages at http://127.0.0.1:8000; to a room: ARGS="--bind 0.0.0.0"
	$(BIN)/python site/serve.py $(ARGS)

site-zip: site ## the pages as one file, build/what-will-it-take.zip
	cd build && ../$(BIN)/python -m zipfile -c what-will-it-take.zip site

site-test: site ## drive every page in a browser
	$(BIN)/python -m pytest -c site/pytest.ini site --ignore site/test_lite.py $(ARGS)

lite: site $(LITE) ## JupyterLite, into build/site/lab; PYODIDE_PACKAGES says where NumPy is
	$(BIN)/python site/lite.py

lite-serve: lite ## the pages and JupyterLite at http://127.0.0.1:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

lite-test: lite ## drive JupyterLite in a browser
	$(BIN)/python -m pytest -c site/pytest.ini site/test_lite.py $(ARGS)

$(LITE): $(PAGES) site/lite-requirements.lock
	$(BIN)/python -m pip install --quiet -r site/lite-requirements.lock
	touch $@

$(PAGES): $(READY) site/requirements.lock site/package-lock.json
	$(BIN)/python -m pip install --quiet -r site/requirements.lock
	cd site && npm ci --no-audit --no-fund --loglevel=error
	touch $@

# An environment of another Python than the one that PYTHON names is made anew.
ifneq ($(origin PYTHON),file)
ifneq ($(wildcard $(READY)),)
WHICH := -c 'import sys; print(sys.base_prefix, sys.version)'
ifneq ($(shell $(PYTHON) $(WHICH)),$(shell $(BIN)/python $(WHICH)))
ANEW := --clear
$(READY): FORCE
FORCE:
endif
endif
endif

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(ANEW) $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
