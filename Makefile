# Every target carries one line of help; `make` alone prints them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
PYTHON := $(VENV)/bin/python
ARGS ?=
export UV_PROJECT_ENVIRONMENT := $(VENV)
# Compiled modules are kept, in .venv, whatever the shell says: most of what a process of ours does to start is compiling.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache
# A notice of the docs' theme about a version of MkDocs that it does not run on.
export NO_MKDOCS_2_WARNING := 1
# The environment that every other target needs, remade when a lock or a manifest changes.
STAMP := $(VENV)/.installed
# Tests without a cluster: a process for each core, the tests of a file in one.
EACH_CORE := -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: help install setup programs browser demo test unit affected cluster environment properties chaos check docs conformance bench judge mutants soak clean lock release-dry-run release-check release-publish

help: ## print this help
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

install: $(STAMP) ## install the locked dependencies into .venv: enough for nodeless plan and everything else offline

setup: $(STAMP) ## install the locked dependencies into .venv and build (or find) the control plane, the Pulumi engine and Helm
	@$(PYTHON) -m localenv build

# Before any test: a build takes longer than a test may.
programs: $(STAMP) ## the same with what the tests need besides: Prometheus, OpenTofu, actionlint, krew, language hosts, Karpenter's charts, Kueue
	@$(PYTHON) -m localenv build --tests

browser: # a Chromium for the tests of the docs, and shells for those of completion
	@bash .ci/browser

$(STAMP): requirements.lock pyproject.toml controller/pyproject.toml components/pyproject.toml localenv/pyproject.toml
	@bash .ci/install $(VENV)
	@touch $(STAMP)

demo: setup ## bring up the whole environment on this machine and run the labs on it (ARGS=--json for JSON on stdout)
	@$(PYTHON) -m localenv demo $(ARGS)

test: programs browser ## run every test, with a part of the random examples (FACTOR=1: all; ARGS are handed to pytest)
	@bash .ci/test $(PYTHON) $(ARGS)

unit: $(STAMP) browser ## run the tests that need no control plane, a tenth of their examples (FACTOR=1: all, and the large ones)
	@NODELESS_PROPERTIES_FACTOR=$${FACTOR:-0.1} $(PYTHON) -m pytest -q $(EACH_CORE) \
		-m "not cluster and not environment$(if $(filter 1,$(FACTOR)),, and not large)" $(ARGS)

affected: $(STAMP) browser ## run the tests of `make unit` that run what has changed since the last time (the first time all, in twice the time)
	@NODELESS_PROPERTIES_FACTOR=0.1 $(PYTHON) -m pytest -q $(EACH_CORE) -p no:randomly --testmon --testmon-forceselect \
		-m "not cluster and not environment and not large" $(ARGS) || [ $$? -eq 5 ]  # 5: none

cluster: programs ## run the tests that need a control plane, and no more
	@$(PYTHON) -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "cluster and not environment" $(ARGS)

environment: programs ## run the tests of the whole environment on this machine
	@$(PYTHON) -m pytest -m environment $(ARGS)

properties: $(STAMP) ## draw FACTOR=100 times the examples of every property that needs no cluster (hours; ARGS="tests/scheduling" for a part)
	@NODELESS_PROPERTIES_FACTOR=$${FACTOR:-100} nice $(PYTHON) -m pytest -q --timeout=0 -n 0 \
		-m "hypothesis and not cluster and not environment" $(ARGS)

chaos: setup ## kill leaders at every instruction, break everything around them, and report each invariant's worst
	@CHAOS_DEATHS=$${CHAOS_DEATHS:-3} $(PYTHON) -m pytest -v -p no:randomly tests/chaos $(ARGS)

fuzz: setup ## throw 20,000 drawn objects at the controller beside an honest workload (ARGS="--objects 2000 --seed 7")
	@$(PYTHON) -m tests.fuzz.run $(ARGS)

check: $(STAMP) ## format, lint, types, layers, generated files, versions, workflows, docs
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy --num-workers auto
	@$(VENV)/bin/lint-imports
	@$(PYTHON) -m nodeless crds controller/crds --check
	@$(PYTHON) -m nodeless reference docs --check
	@$(PYTHON) -m pulumi_nodeless generate --check
	@$(VENV)/bin/hadolint controller/Dockerfile
	@$(PYTHON) -m infra.image sbom --check
	@$(PYTHON) -m infra.release check
	@$(VENV)/bin/zizmor --offline --quiet --no-progress .github/workflows
	@$(PYTHON) -m mkdocs build  # never --quiet: a silenced warning fails no build

docs: $(STAMP) ## build the docs site into site/ (a dead link, or a page left out of mkdocs.yml, fails)
	@$(PYTHON) -m mkdocs build  # never --quiet: a silenced warning fails no build
	@echo "site/index.html; python -m http.server --directory site serves it, with its search" >&2

conformance: setup ## run Karpenter's own end-to-end suites, those specs without a result yet (SPEC="part of a name" for one, ARGS=--help)
	@$(PYTHON) -m localenv.conformance $(if $(SPEC),--spec "$(SPEC)") $(ARGS)

ifneq (,$(findstring --peer,$(ARGS)))
bench: setup
	@$(PYTHON) -m bench peer $(filter-out --peer,$(ARGS))
else
bench: setup ## print the figures: packing problems (PROBLEMS=FOLDER), ten drawn families of them, proofs, admission, decision, nodes, memory, consolidation, claims on devices, start of commands; or ARGS=--peer
	@$(PYTHON) -m bench.packing
	@$(PYTHON) -m bench.families
	@$(PYTHON) -m bench.proofs
	@$(PYTHON) -m bench.hostile_pods
	@$(PYTHON) -m bench.neighbors
	@$(PYTHON) -m bench nodes $(ARGS)
	@$(PYTHON) -m bench.consolidation
	@$(PYTHON) -m bench.shrinking
	@$(PYTHON) -m bench.devices
	@$(PYTHON) -m bench.start_up
endif

judge: $(STAMP) ## draw WORLDS clusters (2000) and judge what many passes plan in each
	@MANY_PASSES=$${WORLDS:-2000} $(PYTHON) -m pytest -q --timeout=0 -p no:randomly tests/scheduling/test_many_passes.py $(ARGS)

mutants: $(STAMP) ## change the code of a ROOM (launch) a little, again and again, and list what no test notices (ARGS="--seed 7")
	@nice $(PYTHON) -m tests.mutants $(or $(ROOM),launch) $(ARGS)

soak: setup ## keep 500 nodes busy for 30 minutes and watch the controller (ARGS="--minutes 5 --pods 1000" for less)
	@$(PYTHON) -m bench soak $(ARGS)

release-dry-run: $(STAMP) ## do everything of a release that can be done here, into dist/ (ARGS="--only charts --require sdk-go")
	@$(PYTHON) -m infra.release dry-run --helm "$$($(PYTHON) -m localenv which helm)" \
		--pulumi "$$($(PYTHON) -m localenv which pulumi)" --hosts "$$($(PYTHON) -m localenv which language-hosts)" $(ARGS)

release-check: $(STAMP) ## fail unless TAG is the version's and the changelog has its section
	@$(PYTHON) -m infra.release check --tag "$(TAG)"

release-publish: $(STAMP) ## publish WHAT (image, charts, github) of what is in dist/; the workflow does
	@$(PYTHON) -m infra.release publish $(WHAT)

lock: ## resolve the dependencies again and write the two lock files
	@uv lock --upgrade
	@uv export --quiet --all-groups --no-emit-workspace --format requirements-txt --no-header -o requirements.lock
	@uv export --quiet --package nodeless-provisioner --extra controller --extra tracing --no-default-groups --no-emit-workspace --no-emit-project \
		--format requirements-txt --no-header -o controller/requirements.lock
	@printf 'hatchling\nuv==0.13.8\n' | uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --universal \
		--python-version 3.11 - -o controller/build-requirements.lock
	@$(PYTHON) -m infra.image sbom

clean: ## remove what the targets above made in this folder (the cache outside it stays)
	@rm -rf $(VENV) site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .testmondata*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
