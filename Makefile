# From a clean clone, with Python and make alone: `make demo`, `make test`.
PYTHON ?= python3
VENV   ?= .venv
# Another build of torch: make demo TORCH_INDEX="--index-url <address of the builds that you want>"
TORCH_INDEX ?=
EXTRAS ?= cli,plots,test

comma     := ,
BIN       := $(VENV)/bin
INSTALLED := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
PEERS     := $(VENV)/.installed-peers
DOCS      := $(VENV)/.installed-docs
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: install demo test test-slow test-faults fuzz lint docs bench peers clean help

help:
	@echo "make demo       install into $(VENV) and run the tour"
	@echo "make test       install into $(VENV), lint, type-check and run the tests"
	@echo "make test-slow  the tests marked slow"
	@echo "make test-faults  damaged files, failing writes, kills and bad arrays, some minutes of each"
	@echo "make fuzz       damaged model files and checkpoints for SECONDS=600"
	@echo "make docs       the pages, with their figures, into docs/_build/html"
	@echo "make bench      every benchmark, side by side with its peers (an idle machine, please)"

# torch comes first and through the constraints: asked for by another package it would bring several GB of CUDA.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(TORCH_INDEX) --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	touch $@

$(PEERS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[peers]"
	touch $@

$(DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

install: $(INSTALLED)

demo: $(INSTALLED)
	$(BIN)/mercer demo

lint: $(INSTALLED)
	$(BIN)/ruff check src tests experiments benchmarks docs examples
	$(BIN)/ruff format --check --quiet src tests experiments benchmarks docs examples
	$(BIN)/codespell src tests experiments benchmarks examples docs/*.md *.md
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow

test-faults: $(INSTALLED)
	$(BIN)/python -m pytest tests/faults -m "slow or not slow"
	$(BIN)/python -m tests.faults.kills --count 50
	$(BIN)/python -m tests.faults.arrays --count 500

SECONDS ?= 600
fuzz: $(INSTALLED)
	$(BIN)/python -m tests.faults.fuzz --seconds $(SECONDS)

# What is made, then Sphinx with warnings as errors, then the links of the built pages.
docs: $(DOCS)
	$(BIN)/python docs/make_api.py
	$(BIN)/python docs/make_figures.py
	$(BIN)/python docs/make_gallery.py
	$(BIN)/python docs/make_results.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py

peers: $(PEERS)

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks --all

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
