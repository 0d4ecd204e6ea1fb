# `make demo` and `make test` are the two commands of the README; the rest is for developers.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check bench bench-trace bench-timing bench-sampling bench-corpus bench-generated bench-calibrate bench-model model-card conformance opencl piglit clean

DEMO_DEVICES := h200 xeon-16core-pocl h100 a100 l40 rtx-4090 rtx-3090 v100 t4 gtx-1080-ti amd-mi250x amd-rx-6900-xt intel-hd-530

# A matrix product that was measured on two devices, so that the prediction has something to stand beside.
demo: $(VENV)/installed
	@$(BIN)/perfvec predict traces/dense/gemm.cl --kernel gemm_tiled --global 1024,1024 --local 16,16 --define TILE=16 \
	  --arg 'buffer:float32:524288:uniform(-1,1)' --arg 'buffer:float32:524288:uniform(-1,1)' \
	  --arg 'buffer:float32:1048576:constant(0)' --arg int32:1024 --arg int32:1024 --arg int32:512 \
	  $(DEMO_DEVICES:%=--device %)

test: $(VENV)/installed-dev opencl
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

# Each benchmark prints a table and ends in one line of JSON.
bench: bench-trace bench-timing bench-sampling

bench-trace: $(VENV)/installed
	$(BIN)/python experiments/bench/trace.py

# The timing model, 128 devices at once on one core.
bench-timing: $(VENV)/installed
	$(BIN)/python -m experiments.bench.timing

bench-sampling: $(VENV)/installed
	$(BIN)/python experiments/bench/sampling.py

# A default trace of every launch of the suites: the slowest and the largest; minutes.
bench-corpus: $(VENV)/installed
	$(BIN)/python experiments/bench/corpus_traces.py

# Default traces of generated launches: how many a second one core makes.
bench-generated: $(VENV)/installed
	$(BIN)/python experiments/bench/generated_traces.py

# A device's posterior from 100 launches, and the choice of the next of 10,000.
bench-calibrate: $(VENV)/installed
	$(BIN)/python experiments/bench/calibrate.py

# How fast the shipped model encodes and predicts, beside PerfVec's reference encoder.
bench-model: $(VENV)/installed
	$(BIN)/python -m experiments.bench.model

# All figures of docs/model-card.md and docs/vectors.md, with the maps, and the README's table; anew after each training of the shipped weights.
model-card: $(VENV)/installed
	$(BIN)/perfvec evaluate --all --json > experiments/foundation/results/evaluate.json
	$(BIN)/python -m experiments.foundation.errors
	$(BIN)/python -m experiments.foundation.probes
	$(BIN)/python -m experiments.foundation.maps
	$(BIN)/python -m experiments.foundation.card

# OpenCL program tests that others wrote, on our executor, Oclgrind and PoCL; ends in one line of JSON.
conformance: $(VENV)/installed opencl piglit
	$(BIN)/python -m experiments.conformance.run

# A virtual environment even where Debian's python3-venv is not installed: virtualenv then comes through pip.
$(VENV)/bin/python:
	@echo "Making $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "perfvec needs Python 3.11 or later; call make PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); \
	  $(PYTHON) -m pip install --quiet --target $(VENV)-bootstrap virtualenv && \
	  PYTHONPATH=$(VENV)-bootstrap $(PYTHON) -m virtualenv --quiet $(VENV); rm -rf $(VENV)-bootstrap; }
	@test -x $@

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing perfvec and what it needs (some minutes the first time) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "Installing what tests and checks need ..."
	@$(PIP) hypothesis import-linter mako pandas pre-commit pyright pytest pytest-xdist ruff
	@touch $@

# PoCL is the tests' second opinion. Without the right to install it, the tests that need it skip and say so.
opencl:
	@ls /etc/OpenCL/vendors/*pocl* >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq pocl-opencl-icd >/dev/null; }; } || \
	  echo "PoCL is not installed (pocl-opencl-icd); what compares with it will skip."

piglit:
	@dpkg -L piglit >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq piglit >/dev/null; }; } || \
	  { echo "The tests are those of Debian's package piglit, which is not installed (apt-get install piglit)." >&2; exit 2; }

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis
