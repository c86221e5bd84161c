# The commands for developers. Each target first creates the environment that it needs.

VENV := .venv
BIN := $(VENV)/bin

PYTHONS := 3.11 3.12 3.13

# Tests and benchmarks start processes by the hundred. Without compiled files, each of them would
# compile the whole package again, which takes longer than anything else that it does.
export PYTHONDONTWRITEBYTECODE :=

# Without it, pyright asks PyPI for a newer version each time that it runs.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: demo test test-all lint unit soak bench docs docs-serve lock clean help

help:
	@echo "make demo      count words, in this process and on Spark, and draw the DAG"
	@echo "make test      linters, type checks, import rules, tests, doctests and examples"
	@echo "make test-all  the tests on Python $(PYTHONS), as far as these are installed"
	@echo "make soak      long runs in which processes are killed all the time; those of durable jobs"
	@echo "               last PYRITE_SOAK_SECONDS each, and PYRITE_SOAK_SEED repeats one that failed"
	@echo "make bench     measure the speed against a plain loop and against other tools"
	@echo "make docs      build the documentation site into site/; each warning is an error"
	@echo "make docs-serve  show the site at localhost:8000, and build it again when a page changes"
	@echo "make lock      resolve the dependencies again and write requirements/*.lock"
	@echo "make clean     remove the environments and the caches of the tools"

demo: $(VENV)/ready
	$(BIN)/pyrite demo

test: $(VENV)/ready
	scripts/install-test-servers
	$(BIN)/python -m tests.java
	scripts/test-side-by-side $(BIN)/pytest $(MAKE) lint

test-all:
	scripts/test-all $(PYTHONS)

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

unit: $(VENV)/ready
	scripts/install-test-servers
	$(BIN)/python -m tests.java
	scripts/test-side-by-side $(BIN)/pytest

soak: $(VENV)/ready
	$(BIN)/pytest -m soak

bench: $(VENV)/ready $(VENV)-bench/ready
	$(BIN)/python -m benchmarks

docs: $(VENV)/ready
	$(BIN)/python -m zensical build --clean --strict
	$(BIN)/python -m scripts.add_examples site

docs-serve: $(VENV)/ready
	$(BIN)/python -m zensical serve

$(VENV)/ready $(PYTHONS:%=$(VENV)-%/ready): \
		requirements/dev.lock pyproject.toml scripts/make-environment scripts/install-package
	scripts/make-environment $(@D) requirements/dev.lock
	touch $@

# The tools that we compare with have dependencies of their own, so they have another environment.
$(VENV)-bench/ready: requirements/bench.lock $(VENV)/ready
	$(BIN)/python -m venv --clear $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes -r requirements/bench.lock
	touch $@

COMPILE := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade \
	--universal --python-version 3.11 --generate-hashes --no-emit-index-url

lock: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --group dev pyproject.toml -o requirements/dev.lock
	$(COMPILE) requirements/bench.in -o requirements/bench.lock

clean:
	rm -rf $(VENV) $(VENV)-bench $(PYTHONS:%=$(VENV)-%) dist site .cache
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
