# The commands a person types. Each one makes .venv first if it is missing or stale.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
READY := .venv/.installed

# Small networks run fastest with one thread per process.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# The pinned pyright is the one we want; do not ask for the newest.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help leaderboard reproduce train tensorboard test test-all lint bench format clean
.DEFAULT_GOAL := help

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo '  ARGS="..." is passed on to the commands that run something'

leaderboard: $(READY) ## run the baselines on the tasks and rank them
	$(BIN)/python -m benchmarks.leaderboard $(ARGS)

reproduce: $(READY) ## run the experiments of all papers anew and write reports
	$(BIN)/python -m benchmarks.reproduce all $(ARGS)

train: $(READY) ## train a learned method (ARGS="masked_ppo --task topic ...")
	$(BIN)/python -m baselines.train $(or $(ARGS),--help)

tensorboard: $(READY) ## open TensorBoard on runs/ (or ARGS="--logdir DIR")
	$(BIN)/tensorboard --logdir runs $(ARGS)

test: lint ## check style and types, run all but the slow tests
	$(BIN)/python -m pytest -n 2 -m "not slow" $(ARGS)

test-all: lint ## the same with the slow tests
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: $(READY) ## check style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/pyright

bench: $(READY) ## measure throughput against peers, and what the leaderboard costs
	$(BIN)/python -m benchmarks.throughput $(ARGS)
	$(BIN)/python -m benchmarks.overhead

format: $(READY) ## rewrite the code in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove .venv, builds and caches; runs/ stays
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Constraints hold for the build requirements too: pip before 25.3 reads the first
# variable there, later ones the second.
$(READY): pyproject.toml constraints.txt
	@echo "Installing into .venv (about a minute) ..."
	@$(PYTHON) -m venv .venv
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
		PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/python -m pip install -qq -e ".[baselines,render,record,distributed,dev]"
	@touch $@
