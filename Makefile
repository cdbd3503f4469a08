# Everything a fresh machine needs is Python 3.11 or newer with pip and venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo-output
OPENAGI := traces/reconstructed/openagi

.PHONY: help demo test lint bench build figures notebooks run-notebooks check-notebooks clean
help:
	@echo "make demo             predict the speedup of a workload that ships with the project"
	@echo "make test             set up and run the tests"
	@echo "make lint             types and style"
	@echo "make bench            speed, printed as ratios measured in one run"
	@echo "make build            source archive and wheel, in dist/"
	@echo "make figures          the paper's tables and figures again, in paper_figs/"
	@echo "make notebooks        open the notebooks in JupyterLab"
	@echo "make run-notebooks    run them all again, in place"
	@echo "make check-notebooks  run them all, and fail on any number that changed"
	@echo "make clean            remove what the others made"

# One environment; each stamp says which extras are in it and is older than what they depend on.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "leapmodel needs Python 3.11 or newer; say which with: make PYTHON=python3.12 demo"; exit 1; }
	@echo "setting up $(VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@
$(VENV)/core: $(VENV)/created pyproject.toml
	@$(BIN)/pip install -q --disable-pip-version-check -e .
	@touch $@
$(VENV)/test: $(VENV)/core
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@
$(VENV)/lint: $(VENV)/core
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[test,lint]'
	@touch $@
$(VENV)/notebooks: $(VENV)/core
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[notebooks]'
	@touch $@
$(VENV)/build: $(VENV)/core
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[build]'
	@touch $@

demo: $(VENV)/core
	@mkdir -p $(DEMO)
	@echo "A workload reconstructed from the LEAP paper's tables (OpenAGI, not measured); see traces/."
	@for command in \
	  "describe $(OPENAGI).parquet" \
	  "predict $(OPENAGI).parquet --predictions $(OPENAGI)_predictions.parquet --draft-name trained-0.6B" \
	  "choose $(OPENAGI).parquet --draft $(OPENAGI)_predictions.parquet --plot $(DEMO)/speedup_by_depth.png" \
	  "report $(OPENAGI).parquet --draft $(OPENAGI)_predictions.parquet -o $(DEMO)/report.html"; \
	do echo; echo "\$$ leapmodel $$command"; $(BIN)/leapmodel $$command || exit 1; done

test: $(VENV)/test
	$(BIN)/pytest -q

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/core
	$(BIN)/python benchmarks/run.py

build: $(VENV)/build
	$(BIN)/python -m build --outdir dist .

figures: $(VENV)/core
	$(BIN)/leapmodel reproduce all -o paper_figs

notebooks: $(VENV)/notebooks
	$(BIN)/jupyter lab --notebook-dir=notebooks

run-notebooks: $(VENV)/notebooks
	$(BIN)/python notebooks/execute.py

check-notebooks: $(VENV)/notebooks
	$(BIN)/python notebooks/execute.py --check

clean:
	rm -rf $(VENV) $(DEMO) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
