# Two commands: `make demo` and `make test`. Each does its own set-up, once.
#
#   make demo                      the synthetic community, 7 days x 2,000 comments
#   make demo DATA=wikipedia_talk  real comments, 10 days x 1,000 (needs the published data)
#   make demo ONCE=1               stop everything at the end; non-zero status if anything failed
#   make test                      every check that CI runs
#   make format | make lock        for developers
#
# PYTHON names the interpreter (3.11 or later) from which the virtual environment is made.

PYTHON ?= python3
DATA   ?= synthetic
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test install format lock clean

help:
	@sed -n '3,8s/^# \{0,3\}//p' Makefile

demo: install
	@$(BIN)/modwatch demo --data $(DATA) $(if $(ONCE),--once)

test: install
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

install: $(VENV)/.installed

$(VENV)/.installed: requirements.txt pyproject.toml
	@bash .ci/install $(PYTHON) $(VENV)
	@touch $@

format: install
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: install
	@$(BIN)/python .ci/lock.py

clean:
	rm -rf $(VENV) var
