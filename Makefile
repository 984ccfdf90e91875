# make lab: set up and open the course. make test: set up and run every test. The rest: make help.
# Another Python: make lab PYTHON=python3.12. Another place for the environment: make lab VENV=/tmp/venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LESSON ?= 00_start_here
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)# as in a container, where there is no one else

.PHONY: help lab test grade build audit lint bench clean
.DEFAULT_GOAL := help

help:
	@echo "make lab     set up, then open the course in JupyterLab"
	@echo "make test    set up, then run every test"
	@echo "make grade   grade notebooks/ and print the report card"
	@echo "make build   make the notebooks from solutions/*.py"
	@echo "make audit   prove that every lesson keeps the course's rules"
	@echo "make lint    check the style of the code"
	@echo "make bench   measure the grader"
	@echo "make clean   remove the environment and all that tests left"

lab: $(VENV)/.lab
	$(BIN)/jupyter lab $(AS_ROOT) --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks/$(LESSON).ipynb

grade: $(VENV)/.lab
	$(BIN)/grader grade notebooks

test: $(VENV)/.dev
	@$(BIN)/python tests/find_chromium.py
	$(BIN)/ruff check .
	$(BIN)/grader build --check
	$(BIN)/python -m pytest -n 2 --dist loadgroup

build: $(VENV)/.lab
	$(BIN)/grader build

audit: $(VENV)/.lab
	$(BIN)/grader audit

lint: $(VENV)/.dev
	$(BIN)/ruff check .

bench: $(VENV)/.lab
	$(BIN)/python benchmarks/check.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache build dist artefacts
	find . -name __pycache__ -prune -exec rm -rf {} +

# The two stamps keep a second run quick: pip runs again only where these files changed.
$(VENV)/.lab: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements" >/dev/null 2>&1
	@touch $@

$(VENV)/.dev: $(VENV)/.lab
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "The course needs Python 3.11 or newer: make lab PYTHON=/path/to/python3.11"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "This Python cannot make environments; on Debian or Ubuntu: sudo apt install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
