# Every target makes the environment it needs in .venv; `make` alone lists them.

# `make test TORCH=2.8.0 PYTHON=python3.13` runs with that torch, that interpreter, or both, in an environment beside
# .venv. Style and types are those of .venv, and not looked at there.
PYTHON ?= python3
TORCH ?=
ELSEWHERE := $(if $(TORCH),-torch-$(TORCH))$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
VENV ?= .venv$(ELSEWHERE)
BIN := $(VENV)/bin
CONSTRAINTS := $(if $(TORCH),$(VENV)/constraints.txt,constraints.txt)
PIP := $(BIN)/python -m pip install --quiet -c $(CONSTRAINTS)
PROJECT := pyproject.toml $(CONSTRAINTS)
WORKERS ?= 2
TIER ?= not slow and not program
# A thousand processes of the tests import what one of them has compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo picture test test-all tests programs lint faults hosts proofs mutants bench gpu docs new-rule clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target what; do \
	    printf '  make %-12s %s\n' "$$target" "$$what"; done

demo: $(VENV)/demo.stamp ## run two training loops that differ in one line, under supervision
	@$(BIN)/python examples/demo.py

picture: $(VENV)/demo.stamp ## update the picture in the README and the reports that pages quote
	$(BIN)/python examples/demo.py --svg docs/assets/demo.svg

test: ## tests and doctests, and lint beside them; `make test programs` is what CI runs
	@$(MAKE) --no-print-directory --keep-going --jobs=2 tests $(if $(ELSEWHERE),,lint)

programs: ## tests of a second or more: whole programs, commands in processes, several ranks
	@$(MAKE) --no-print-directory tests TIER="program and not slow"

test-all: ## all of these, and the slow tests, such as the harm of every proof
	@$(MAKE) --no-print-directory --keep-going --jobs=2 tests $(if $(ELSEWHERE),,lint) TIER=

tests: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(TIER)"

lint: $(VENV)/dev.stamp ## format, style, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

faults: $(VENV)/dev.stamp ## kill -9, full disks, torn files and read-only folders against checkpoints
	$(BIN)/python -m pytest -n $(WORKERS) tests/faults

hosts: $(VENV)/dev.stamp ## trainings on two hosts in network namespaces, and jobs of clusters; Linux, as root
	$(BIN)/python -m pytest -n $(WORKERS) tests/hosts

proofs: $(VENV)/dev.stamp ## measure the harm of every proof; RULES="..." for some
	$(BIN)/python proofs/measure.py $(RULES)

mutants: $(VENV)/dev.stamp ## plant mistakes in healthy programs and count those that are found; ARGS="--help"
	@$(BIN)/python bench/mutants $(ARGS)

bench: $(VENV)/dev.stamp ## measure the cost of supervision and of the toolkit; ARGS="--save" keeps the numbers
	@set -e; for program in $(filter-out bench/gpu.py,$(wildcard bench/[a-z]*.py)); do echo "$(BIN)/python $$program $(ARGS)"; $(BIN)/python $$program $(ARGS); done

gpu: ## checks and measurements on a GPU: ten minutes, with the installed python, torch and numpy; ARGS="--quick"
	@$(PYTHON) bench/gpu.py $(ARGS)

docs: $(VENV)/docs.stamp ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

new-rule: $(VENV)/dev.stamp ## write the skeletons of a rule: make new-rule ID=my-rule
	@$(BIN)/python tools/new_rule.py "$(ID)"

clean: ## remove what was built here; the environment stays
	rm -rf build dist site docs/rules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find src tests proofs examples bench tools docs -type d -name __pycache__ -prune -exec rm -rf {} +

# --- environments: a stamp is renewed when what it was made from changes ---

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/constraints.txt: constraints.txt | $(BIN)/python
	sed 's/^torch==.*/torch==$(TORCH)/' constraints.txt >$@

$(VENV)/demo.stamp: $(PROJECT) | $(BIN)/python
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/dev.stamp: $(PROJECT) | $(BIN)/python
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/demo.stamp

$(VENV)/docs.stamp: $(PROJECT) | $(BIN)/python
	$(PIP) -e '.[docs]'
	@touch $@
