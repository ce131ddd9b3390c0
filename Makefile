# make lab · test · test-all · fuzz · regenerate · bench · site · lite · reset: each makes
# what it needs first.
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

.PHONY: lab test test-all fuzz regenerate bench reset lint lock site site-serve site-test \
    lite lite-serve lite-test

lab: $(READY)
	$(BIN)/jupyter lab $(ARGS) notebooks/00_start_here.ipynb

test: $(READY) lint
	$(BIN)/python -m pytest $(ARGS)

test-all: $(READY) # with PyTorch and transformers, beside the lock; TORCH may name another build
	$(BIN)/python -m pip install --quiet --constraint requirements.lock $(TORCH) $(MODELS)
	$(MAKE) test

fuzz: $(READY) # so many calls with good and hostile values
	FUZZ=$(FUZZ) $(BIN)/python -m pytest tests/test_fuzz.py $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

regenerate: $(READY)
	$(BIN)/python tools/regenerate.py $(if $(CHECK),--check) $(ARGS)

bench: $(READY)
	$(BIN)/python -m pytest tools/bench.py -o addopts= --benchmark-only \
	    --benchmark-columns=min,median,iqr,rounds $(ARGS)

reset: # a notebook as it was, yours kept beside it: make reset NOTEBOOK=03_duration
	@$(PYTHON) teaching/reset.py "$(NOTEBOOK)"

lock: $(READY)
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-annotate --no-header \
	    --extra course --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-annotate --no-header \
	    --constraint requirements.lock --extra site pyproject.toml -o site/requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-annotate --no-header \
	    --constraint requirements.lock --constraint site/requirements.lock \
	    --extra lite pyproject.toml -o site/lite-requirements.lock

site: $(PAGES) # into build/site; needs npm, and nothing else of it does
	$(BIN)/python site/build.py

site-serve: site
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

site-test: site
	$(BIN)/python -m pytest -c site/pytest.ini site/test_site.py $(ARGS)

lite: site $(LITE) # into build/site/lab; PYODIDE_PACKAGES may say where NumPy comes from
	$(BIN)/python site/lite.py

lite-serve: lite
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

lite-test: lite
	$(BIN)/python -m pytest -c site/pytest.ini site/test_lite.py $(ARGS)

$(LITE): $(PAGES) site/lite-requirements.lock
	$(BIN)/python -m pip install --quiet -r site/lite-requirements.lock
	touch $@

$(PAGES): $(READY) site/requirements.lock site/package-lock.json
	$(BIN)/python -m pip install --quiet -r site/requirements.lock
	npm ci --prefix site --no-audit --no-fund --loglevel=error
	touch $@

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
