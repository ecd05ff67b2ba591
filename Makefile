PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
# The pretrained forecasters' libraries pin versions that the rest should not have to keep to.
PRETRAINED := .venv-pretrained
PRETRAINED_INSTALLED := $(PRETRAINED)/.installed
# Spark keeps to an older pandas.
SPARK := .venv-spark
LOWEST := .venv-lowest
SPARK_INSTALLED := $(SPARK)/.installed
PIP := -m pip install --quiet --disable-pip-version-check
# The library, the monitor and the bench, and what their tests need.
EVERYTHING := --editable ".[dev]" --editable "./monitor[mcp,opcua,postgres,protobuf]" --editable ./bench
PROJECTS := pyproject.toml monitor/pyproject.toml bench/pyproject.toml
COMPILE := uv pip compile --quiet --extra dev --extra mcp --extra opcua --extra postgres --extra protobuf --no-emit-package tocsin $(PROJECTS)

.PHONY: help venv demo serve warm check test test-full test-pretrained test-spark test-lowest coverage lock lint lint-page docs release-check benchmark clean

help:
	@echo "make demo             set up what it needs and show the main job"
	@echo "make serve            set everything up and start the monitor on this machine"
	@echo "make check            the checks of style, and the tests that are quick, in about a minute"
	@echo "make test             set everything up, and run the checks and all tests but the longest, in about ten minutes"
	@echo "make test-full        the same with the longest tests: everything that must pass"
	@echo "make test-pretrained  the same for the adapters to pretrained forecasters, in an environment of their own"
	@echo "make test-spark       the same for Tocsin on Apache Spark, likewise; needs Java 17 or newer"
	@echo "make test-lowest      the quick tests with the oldest versions of everything that pyproject.toml allows"
	@echo "make coverage         the tests, and which lines they reach: build/coverage/index.html"
	@echo "make lock             renew tests/lock.txt, the versions that the tests run with"
	@echo "make lint             only the checks of style, types and room boundaries"
	@echo "make lint-page        check the page's JavaScript with tsc and eslint; needs npm"
	@echo "make docs             the documentation site, in build/site; open its index.html"
	@echo "make release-check    build the sdist and the wheel, and try the wheel in an empty environment"
	@echo "make benchmark        measure speed, calibration and what faults are found"
	@echo "make clean            remove what these made"

venv: $(INSTALLED)

# The versions that the tests are known to pass with: a new release of a tool must not break somebody's first try.
$(INSTALLED): pyproject.toml monitor/pyproject.toml bench/pyproject.toml tests/lock.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -c tests/lock.txt $(EVERYTHING)
	touch $(INSTALLED)

# The oldest versions that pyproject.toml allows.
$(LOWEST)/.installed: $(PROJECTS)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python $(PIP) uv
	$(LOWEST)/bin/$(COMPILE) --resolution lowest-direct --output-file $(LOWEST)/lock.txt
	$(LOWEST)/bin/python $(PIP) -c $(LOWEST)/lock.txt $(EVERYTHING)
	touch $(LOWEST)/.installed

# What the demo needs, and none of the developers' tools.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --editable ".[plot]"
	touch $(READY)

$(PRETRAINED_INSTALLED): pyproject.toml tests/pretrained/constraints.txt
	$(PYTHON) -m venv $(PRETRAINED)
	$(PRETRAINED)/bin/python $(PIP) -c tests/pretrained/constraints.txt --editable . --editable ./bench \
		hypothesis matplotlib pytest pytest-xdist chronos-forecasting==2.3.2 tirex-ts==1.4.2 \
		datasets deprecated einops urllib3 "scikit-learn<1.8"
	$(PRETRAINED)/bin/python $(PIP) -c tests/pretrained/constraints.txt --no-deps granite-tsfm==0.3.11
	touch $(PRETRAINED_INSTALLED)

$(SPARK_INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python $(PIP) --editable ".[spark]" hypothesis pytest
	touch $(SPARK_INSTALLED)

demo: $(READY)
	$(BIN)/tocsin demo --out demo

# The data folder stays, whatever `make clean` does: it is not something that can be made again.
serve: venv
	$(BIN)/tocsin serve

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# No lock file: the versions are exact, and what they need is not shipped.
node_modules: package.json
	npm install --no-package-lock --no-audit --no-fund --silent
	touch node_modules

lint-page: node_modules
	node_modules/.bin/tsc
	node_modules/.bin/eslint monitor/src/tocsin_monitor/page/js

# Each worker begins with a part of its own, so that it seldom starts a server or browser that another one has, too.
# More workers than cores: many tests wait for a server or a browser.
WORKERS := $(shell $(PYTHON) -c 'import os; print(3 * os.cpu_count() // 2 or 1)')
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal

# The tests start hundreds of processes, which would each compile all of Python's files.
unexport PYTHONDONTWRITEBYTECODE

# The inner loops, once for all workers.
warm: venv
	$(BIN)/python -m tests.warm

# For while one works. A worker for each core: quick tests wait for nobody.
check:
	@$(MAKE) --no-print-directory -j 2 lint warm
	$(BIN)/pytest -n auto --dist worksteal -m "not slow and not full"

# For a change that is ready. How many minutes it took is left in build/test_minutes, if everything passed.
test: venv
	@mkdir -p build && rm -f build/test_minutes && date +%s > build/test_began
	@$(MAKE) --no-print-directory -j 2 lint warm
	$(PYTEST) -m "not full"
	@echo "$$(cat build/test_began) $$(date +%s)" | awk '{ printf "%.1f\n", ($$2 - $$1) / 60 }' > build/test_minutes
	@echo "test_minutes=$$(cat build/test_minutes)"

# Everything that must pass: first the same, then what that leaves out.
test-full: test
	$(PYTEST) -m full

test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/pytest -n auto -m "not slow and not full"

# Renews the versions that the tests run with, for all platforms and versions of Python.
lock: venv
	$(BIN)/python $(PIP) uv
	$(BIN)/$(COMPILE) --upgrade --universal --python-version 3.11 --no-header --no-annotate --output-file tests/lock.txt

coverage: venv
	$(BIN)/pytest -n auto --cov --cov-report=term:skip-covered --cov-report=html:build/coverage

test-pretrained: $(PRETRAINED_INSTALLED)
	$(PRETRAINED)/bin/pytest -n auto tests/pretrained tests/training

# One process: the tests share a session of Spark, which takes long to start.
test-spark: $(SPARK_INSTALLED)
	$(SPARK)/bin/pytest -rs tests/spark

docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

release-check: venv
	$(BIN)/python tests/release.py

# Other networks are measured beside the embedded one where `make test-pretrained` has installed their libraries, and
# Spark where `make test-spark` has.
benchmark: venv
	$(BIN)/python benchmarks/scorer.py
	$(firstword $(wildcard $(PRETRAINED)/bin/python) $(BIN)/python) benchmarks/forecaster.py
	$(BIN)/python benchmarks/detector.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/faults.py
	$(BIN)/python benchmarks/relations.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/early.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/watch.py
	$(if $(wildcard $(SPARK)/bin/python),$(SPARK)/bin/python benchmarks/spark.py)

clean:
	rm -rf $(VENV) $(PRETRAINED) $(SPARK) $(LOWEST) build demo dist node_modules simulation
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
