# Every target sets up what it needs: a .venv here, system packages only as root.
SHELL := /bin/bash
BIN := .venv/bin

.PHONY: help setup demo test test-quick test-lab test-lab-line lint clean bench lab

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/.ready: pyproject.toml constraints.txt scripts/setup.sh
	@scripts/setup.sh || { code=$$?; echo "setup: the step above failed: check the network (pip's index), Python 3.11 (PYTHON=...) and room on the disk (df -h .), then run make setup again." >&2; exit $$code; }

setup: .venv/.ready ## Create or refresh .venv

demo: .venv/.ready ## Provision, prove, certify and train on an emulated fabric
	@$(BIN)/paisoar demo

lint: .venv/.ready ## ruff, mypy --strict, import contracts, ansible-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	PATH="$(CURDIR)/$(BIN):$$PATH" ANSIBLE_CONFIG=playbooks/ansible.cfg ansible-lint -q playbooks

test-quick: .venv/.ready ## The everyday part of the tests
	$(BIN)/pytest -n 2 --dist loadgroup -m "not slow and not lab"

test: lint ## Lint and all tests, the whole line included, but for those of the lab
	$(BIN)/pytest -n 2 --dist loadgroup -m "not lab"

test-lab-line: .venv/.ready ## Two hosts and a switch as virtual machines: provision, audit, validate
	@scripts/lab.sh || echo "test-lab-line: NO LAB CAN BE HAD HERE, see above: its tests are skipped" >&2
	PAISOAR_LAB_HOSTS=2 $(BIN)/pytest -m lab -ra tests/e2e/test_lab.py

test-lab: .venv/.ready ## Boot virtual machines and walk the whole line on them
	@scripts/lab.sh
	$(BIN)/pytest -m lab

.venv-peers/.ready: scripts/peers.sh .venv/.ready
	@scripts/peers.sh

bench: .venv-peers/.ready ## Install the peers and compare allreduce with theirs
	$(BIN)/paisoar bench allreduce

lab: .venv/.ready ## Install what the lab needs, and start it in paisoar-lab/
	@scripts/lab.sh
	@mkdir -p paisoar-lab
	@cd paisoar-lab && ../$(BIN)/paisoar lab up

clean: ## Remove .venv and caches
	rm -rf .venv .venv-peers build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
