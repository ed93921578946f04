# make run     trains CartPole_DQN until it holds its pole up
# make test    lint, type check, import contracts, unit tests
# make soak    interrupts, resumes and damages runs in every way (half an hour)
# make golden  trains every preset that has a reward to reach (hours)
# make bench   measures speed
# make lint    ruff, mypy, import-linter
# make clean   removes .venv and everything that tools left behind
#
# PYTHON=/path/to/python chooses the interpreter (3.10 to 3.13); otherwise the first that fits is taken.

SHELL := /bin/bash
.DEFAULT_GOAL := help

CANDIDATES := python3 python3.12 python3.13 python3.11 python3.10 python
SUITABLE := import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))
VENV := .venv
BIN := $(VENV)/bin
INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable
METADATA := pyproject.toml setup.py

.PHONY: help run test soak golden bench lint format clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed '/^$$/q'

$(BIN)/python:
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  for candidate in $(CANDIDATES); do \
	    if $$candidate -c '$(SUITABLE)' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	  done; \
	fi; \
	if [ -z "$$python" ]; then \
	  echo "no Python from 3.10 to 3.13 with venv found (on Debian: apt install python3 python3-venv);" \
	       "name one with: make PYTHON=/path/to/python3.12" >&2; exit 2; \
	fi; \
	if ! $$python -c '$(SUITABLE)'; then \
	  echo "'$$python' is not a Python from 3.10 to 3.13 with venv" >&2; exit 2; \
	fi; \
	echo "making $(VENV) with $$($$python --version)"; \
	$$python -m venv $(VENV) && $(BIN)/python -m pip install --quiet --upgrade pip

# A stamp is newer than the metadata it was installed from, so a second make does nothing.
$(VENV)/.run-installed: $(BIN)/python $(METADATA)
	$(INSTALL) .
	@touch $@

$(VENV)/.test-installed: $(BIN)/python $(METADATA)
	$(INSTALL) '.[test,jax,atari,mujoco,distributed,dashboard]'
	@touch $@ $(VENV)/.run-installed

run: $(VENV)/.run-installed
	$(BIN)/coach -p CartPole_DQN --apply_stop_condition

test: lint
	$(BIN)/python -m pytest -n auto --maxprocesses 8 -m "not golden and not slow" -q

soak: $(VENV)/.test-installed
	$(BIN)/python -m pytest -n auto --maxprocesses 8 -m "resume or faults" -q

golden: $(VENV)/.test-installed
	$(BIN)/python -m pytest -m golden -s tests/golden

$(VENV)/.bench-installed: $(BIN)/python $(METADATA)
	$(INSTALL) '.[bench,jax,atari]'
	@touch $@ $(VENV)/.run-installed

bench: $(VENV)/.bench-installed
	$(BIN)/python -m benchmarks

lint: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
