# Everything a developer types. Each target makes the environment it needs first.

VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint unit bench lock clean help

help:
	@echo "make demo   the word count, with the DAG drawn"
	@echo "make test   linters, types, import direction, tests, doctests, examples"
	@echo "make bench  speed against a plain loop and against other tools"
	@echo "make lock   resolve the dependencies anew into requirements/*.lock"
	@echo "make clean  remove the environment and what tools left behind"

demo: $(VENV)/ready
	$(BIN)/pyrite demo

test: lint unit

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/ready
	$(BIN)/pytest

bench: $(VENV)/ready-for-bench
	$(BIN)/python -m benchmarks

$(VENV)/ready: requirements/dev.lock pyproject.toml scripts/make-environment
	scripts/make-environment $(VENV) requirements/dev.lock
	touch $@

$(VENV)/ready-for-bench: $(VENV)/ready requirements/bench.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.lock
	touch $@

lock: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --group dev pyproject.toml -o requirements/dev.lock
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url requirements/bench.in -o requirements/bench.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
