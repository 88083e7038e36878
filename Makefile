# Set-up and every routine task. `make` sets up and writes a first report, `make test` sets up and runs the tests.
#
# Needs Python 3.11 or newer, git and make; everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

MODEL ?= llama-3.1-70b
HARDWARE ?= h100-sxm
REPORT ?= reports/first-report.html

.DEFAULT_GOAL := report
.PHONY: report reports setup test check format golden schema clean

## Set up, and write an HTML report of MODEL on HARDWARE to REPORT.
report: $(READY)
	@$(BIN)/planner report $(MODEL) --hardware $(HARDWARE) --output $(REPORT)

## Write the sample reports anew; a test holds them to what these commands write.
reports: $(READY)
	$(BIN)/planner report llama-3.1-70b --hardware h100-sxm --batch 64 --tp 8 --precision fp8 \
	  --kv-precision fp8 --date 2026-11-29 --output reports/llama-3.1-70b-on-h100-sxm.html
	$(BIN)/planner report qwen3-30b-a3b --hardware tpu-v5p --batch 64 --tp 4 --ep 4 \
	  --date 2026-11-29 --output reports/qwen3-30b-a3b-on-tpu-v5p.html

## Set up .venv, or bring it up to date with pyproject.toml.
setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed, this is %d.%d" % v[:2])'
	$(BIN)/python -c 'import pip, sys; sys.exit(sys.prefix == sys.base_prefix)' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

## Set up what is missing, and pass the tests.
test: $(READY)
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

## Everything that a change must pass: format, lint, types, tests.
check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

## Format and fix what can be fixed.
format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## Write the golden tables anew; read the difference before committing it.
golden: $(READY)
	$(BIN)/python -m pytest tests/golden --update-golden $(PYTEST_ARGS)

## Write the JSON Schemas of the YAML formats anew.
schema: $(READY)
	$(BIN)/planner schema model --output docs/schema/model.schema.json
	$(BIN)/planner schema hardware --output docs/schema/hardware.schema.json

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
