# Each target works from a bare clone: it makes .venv, installs what it needs and runs.
# uv is used where it is installed, python's venv and pip otherwise.

VENV := .venv
BIN  := $(VENV)/bin
UV   := $(shell command -v uv 2>/dev/null)
# The first interpreter of at least Python 3.11; PYTHON=/path/to/python chooses another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { command -v $$p; break; }; done)

.PHONY: demo test bench lint clean

demo: $(VENV)/.core
	$(BIN)/ddlcn demo

test: lint
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/audit.py

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "ddlcn needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
ifdef UV
	$(UV) venv --quiet --python "$(PYTHON)" $(VENV)
else
	"$(PYTHON)" -m venv $(VENV)
endif

$(VENV)/.core: pyproject.toml | $(BIN)/python
ifdef UV
	$(UV) pip install --quiet --python $(BIN)/python -e .
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
endif
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
ifdef UV
	$(UV) pip install --quiet --python $(BIN)/python -e ".[dev]"
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
endif
	@touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
