PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help venv demo test lint benchmark clean

help:
	@echo "make demo       set everything up and show the main job"
	@echo "make test       set everything up and run everything that must pass"
	@echo "make lint       only the checks of style, types and room boundaries"
	@echo "make benchmark  measure the speed of the scorer"
	@echo "make clean      remove what these made"

venv: $(INSTALLED)

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(INSTALLED)

demo: venv
	$(BIN)/tocsin simulate --out simulation

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n auto

benchmark: venv
	$(BIN)/python benchmarks/scorer.py

clean:
	rm -rf $(VENV) simulation dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
