# make demo, make test: everything from a fresh clone to the result. `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: help demo environment test coverage test-browser test-slow portable portable-quick check docs docs-serve sanitize sanitize-quick torture \
  torture-quick release-check wheels minimum newest format bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    install into .venv, train 600 networks and draw their success frontier (two minutes or so)"
	@echo "make test    install into .venv and run the tests (seven minutes or so on two cores)"
	@echo "make coverage       the same with every extra installed, and how much of the code the tests run"
	@echo "make portable       run the tests as other processors would: other BLAS kernels and instruction sets"
	@echo "make test-browser   the tests of the report's page in a headless Chromium"
	@echo "make check   lint, types, import contracts, spelling, pages that follow the stored results"
	@echo "make docs    build the documentation's site into build/docs and check it, without a network"
	@echo "make docs-serve     build it and serve it on this machine, where its search works"
	@echo "make sanitize       run the C++ part under the address, undefined-behaviour and thread sanitizers"
	@echo "make torture        try to break it for half an hour: kills, full disks, damaged files, odd numbers"
	@echo "make wheels         build sdist and wheels, install and try each in an empty environment without a compiler"
	@echo "make minimum        run the tests with the oldest versions of its dependencies that fewfire allows"
	@echo "make newest         run the tests with the newest versions there are, deprecations being errors"
	@echo "make release-check  what is too long for every change: these four, the docs and the slow tests"
	@echo "make bench   run every benchmark; each prints one JSON line"
	@echo "make format  rewrite the code in the house format"
	@echo "make clean   remove .venv and build output"

demo:
	@$(PYTHON) tools/environment.py
	@$(BIN)/fewfire demo

# WITH_TORCH=1 also installs torch, for the tests that compare with autograd; WITH_SWEEP=1 Dask and pyarrow;
# WITH_BROWSER=1 what drives a Chromium; WITH_CUDA=1 NVRTC, which compiles the CUDA kernels without a GPU (200 MB);
# WITH_JAX=1 JAX for processors (85 MB); WITH_ONNX=1 onnx and onnxruntime (33 MB).
EXTRAS = $(if $(WITH_TORCH),--with torch) $(if $(WITH_SWEEP),--with sweep) $(if $(WITH_BROWSER),--with browser) \
  $(if $(WITH_CUDA),--with cuda) $(if $(WITH_JAX),--with jax) \
  $(if $(WITH_ONNX),--with onnx)
environment:
	@$(PYTHON) tools/environment.py --with dev $(EXTRAS)

PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
test: environment
	@$(PYTEST)
	@echo "All tests passed."

# TESTS=@FILE runs the tests that FILE names, a line each, such as those another run has skipped (pytest --skipped FILE);
# what other runs of this tree left in .coverage counts.
TESTS ?= tests
coverage: WITH_TORCH = 1
coverage: WITH_SWEEP = 1
coverage: WITH_CUDA = 1
coverage: WITH_JAX = 1
coverage: WITH_ONNX = 1
coverage: environment
	@$(PYTEST) --cov --cov-append --cov-report=term:skip-covered $(TESTS)

# portable-quick is the part of it that every change runs, in two minutes or so.
portable portable-quick: environment
	@$(BIN)/python tools/portable.py $(if $(filter %-quick,$@),--quick)

test-browser: WITH_BROWSER = 1
test-browser: environment
	@$(BIN)/python -m pytest -m browser

test-slow: environment
	@$(BIN)/python -m pytest -m slow

check:
	@$(PYTHON) tools/environment.py --with dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell
	@$(BIN)/python tools/results_page.py --check
	@$(BIN)/python tools/readme_lines.py --check

docs:
	@$(PYTHON) tools/environment.py --with dev --with torch --with docs
	@$(BIN)/python tools/docs.py

docs-serve: docs
	@echo "Open http://127.0.0.1:8000 in a browser; Ctrl-C ends it."
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/html 8000

# sanitize-quick is the part of it that every change runs, in three minutes or so.
sanitize sanitize-quick:
	@$(PYTHON) tools/environment.py --with dev
	@$(BIN)/python tools/sanitize.py $(if $(filter %-quick,$@),--quick)

# Hard tries at breaking things, for MINUTES; another SEED tries other things.
MINUTES ?= 30
SEED ?= 0
torture torture-quick: environment
	@FEWFIRE_TORTURE_SEED=$(SEED) FEWFIRE_TORTURE_SECONDS=$$(( 60 * $(if $(filter %-quick,$@),2,$(MINUTES)) )) \
	  $(BIN)/python -m pytest tests/torture -m torture

wheels:
	@$(PYTHON) tools/wheels.py

# On the oldest Python too. Rivals and frames are left out of minimum: tests that need them skip themselves.
minimum newest:
	@$(PYTHON) tools/versions.py $@ --workers $(WORKERS)

release-check: docs sanitize torture test-slow portable wheels minimum newest

bench:
	@$(PYTHON) tools/environment.py --with dev --with torch --with onnx --with bench
	@$(BIN)/python tools/benchmarks.py

format:
	@$(PYTHON) tools/environment.py --with dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
