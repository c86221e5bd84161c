# Everything a developer types. Each target makes the environment it needs first.

VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint unit soak bench lock clean help

help:
	@echo "make demo   the word count, with the DAG drawn"
	@echo "make test   linters, types, import direction, tests, doctests, examples"
	@echo "make soak   long runs while processes are killed all the time"
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

soak: $(VENV)/ready
	$(BIN)/pytest -m soak

bench: $(VENV)/ready $(VENV)-bench/ready
	$(BIN)/python -m benchmarks

$(VENV)/ready: requirements/dev.lock pyproject.toml scripts/make-environment
	scripts/make-environment $(VENV) requirements/dev.lock
	touch $@

# The tools that we measure against have an environment of their own: their dependencies are not ours.
$(VENV)-bench/ready: requirements/bench.lock $(VENV)/ready
	$(BIN)/python -m venv --clear $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.lock
	touch $@

lock: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --group dev pyproject.toml -o requirements/dev.lock
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url requirements/bench.in -o requirements/bench.lock

clean:
	rm -rf $(VENV) $(VENV)-bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
