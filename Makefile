# `make demo` and `make test` do all their own set-up; Python 3.11 is the one thing they need.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: venv demo test test-long golden format

venv: .venv/.installed

.venv/.installed: pyproject.toml images/constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint images/constraints.txt "setuptools>=77" wheel
	$(BIN)/python -m pip install --quiet --constraint images/constraints.txt --editable ".[engine,mxnet,test]"
	touch $@

demo: venv
	$(BIN)/geokfp demo --output demo

test: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p geokfp.components -p geokfp.pipelines
	$(BIN)/lint-imports
	$(BIN)/hadolint images/*/Dockerfile
	$(BIN)/python -m pytest

test-long: venv
	$(BIN)/python -m pytest -m "long or not long" --timeout 1800

golden: venv
	$(BIN)/python -m pytest tests/pipelines --update-goldens

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
