# Every command does its own set-up, once.
#
#   make demo                      the synthetic community, 7 days x 2,000 comments
#   make demo DATA=wikipedia_talk  real comments, 10 days x 1,000 (needs the published data)
#   make demo DATA=civil_comments  30,000 real comments, labelled with real ratings (the same)
#   make demo DATA=wikipedia_talk RECIPE=FILE   with a recipe, such as a fine-tuned encoder's (minutes)
#   make demo SCORER=serve         comments are scored by a model server
#   make demo ERRORS="0.02 0.2"    moderators with these error rates (false positive, false negative)
#   make demo DRIFT=1              a new platform in the second week, with insults new to the model
#   make demo ONCE=1               stop everything at the end; non-zero status if anything failed
#   make check                     linters, types, unit tests: no server, browser, training, simulation
#   make test                      everything that CI runs
#   make soak                      long kill sweeps and simulations, which `make test` represents
#   make docs                      the documentation site, into build/docs
#   make format | make lock        for developers; `make lock UPGRADE="pandas numpy"` or UPGRADE=--all
#
# PYTHON names the interpreter (3.11 or later) from which the virtual environment is made.

PYTHON ?= python3
DATA   ?= synthetic
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo check test soak docs unit-tests install format lock clean \
    lint-format lint-style lint-types lint-imports

help:
	@sed -n '3,16s/^# \{0,3\}//p' Makefile

demo: install
	@$(BIN)/modwatch demo --data $(DATA) $(if $(RECIPE),--recipe $(RECIPE)) $(if $(SCORER),--scorer $(SCORER)) $(if $(ERRORS),--error-rates $(ERRORS)) $(if $(DRIFT),--drift) $(if $(ONCE),--once)

# The linters run beside each other; -O prints the output of each as a whole.
LINTERS := lint-format lint-style lint-types lint-imports

# One more than cores, since many tests wait for servers; at most four.
TEST_WORKERS := $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? n + 1 : 4)))

# One thread a process: tests run beside each other, and BLAS would start one for every core.
test unit-tests: export OMP_NUM_THREADS := 1
# Folders whose tests run whole days, train a model, start programs, or import PyTorch.
unit-tests: WHOLE_PATHS := $(addprefix tests/,acceptance audits/attacks dags distribution docker \
    installation lab/benchmark lab/demo models monitoring pipeline review/console/attacks review/console/browser)
unit-tests: export HYPOTHESIS_PROFILE := quick

# Tests and demo start hundreds of Python processes; without bytecode each compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

check:
	@$(MAKE) --no-print-directory install
	@$(MAKE) --no-print-directory -j 4 -O $(LINTERS)
	@$(MAKE) --no-print-directory unit-tests

test:
	@$(MAKE) --no-print-directory install
	@$(MAKE) --no-print-directory -j 4 -O $(LINTERS) docs
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

lint-format:
	@$(BIN)/ruff format --check .

lint-style:
	@$(BIN)/ruff check .

lint-types:
	@$(BIN)/mypy

lint-imports:
	@$(BIN)/lint-imports

soak: export OMP_NUM_THREADS := 1
soak: install
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder -m soak

unit-tests:
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -q \
	    -m "not services and not simulation and not soak" $(addprefix --ignore=,$(WHOLE_PATHS))

docs: install
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

install: $(VENV)/.installed

$(VENV)/.installed: requirements.txt pyproject.toml setup.py
	@bash .ci/install $(PYTHON) $(VENV)
	@touch $@

format: install
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: install
	@$(BIN)/python .ci/lock.py $(UPGRADE)

clean:
	rm -rf $(VENV) build var
