# Everything a fresh machine needs is Python 3.11 or newer with pip and venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# vLLM for CPUs pins much, so it has an environment of its own.
ENGINE := .venv-engine
ENGINE_BIN := $(ENGINE)/bin
DEMO := demo-output
SMOKE := smoke-output
MEASURED := measured
SCREENSHOTS := browser-output
OPENAGI := traces/reconstructed/openagi

.PHONY: help demo test lint bench build figures notebooks run-notebooks check-notebooks \
  test-browser engine test-engine measure measure-online measure-smoke clean
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
	@echo "make test-browser     run some in JupyterLab in Chromium; screenshots in browser-output/"
	@echo "make engine           an environment with vLLM for CPUs and what training needs"
	@echo "make test-engine      the tests that start real servers, in it"
	@echo "make measure          the real loop on this machine: the paper's control set in miniature"
	@echo "make measure-online   a draft that learns while the loop runs"
	@echo "make measure-smoke    both in small, with tiny models: does everything work here?"
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
$(VENV)/browser: $(VENV)/core
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[test,notebooks,browser]'
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

# Two at a time, but for those that judge a time: these have the machine to themselves.
test: $(VENV)/test
	$(BIN)/pytest -q -m "not browser and not engine and not timed" -n 2 --dist loadfile
	$(BIN)/pytest -q -m "timed and not engine" tests/execution

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

# Asked for by name, it fails where the tests themselves would skip.
test-browser: $(VENV)/browser
	@for program in chromium chromedriver; do command -v $$program > /dev/null \
	  || { echo "make test-browser needs $$program; on Debian: apt-get install chromium chromium-driver"; exit 1; }; done
	rm -rf $(SCREENSHOTS)
	$(BIN)/pytest -q tests/browser

# torch comes first, for CPUs: what training needs would bring the build for GPUs.
$(ENGINE)/core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "leapmodel needs Python 3.11 or newer; say which with: make PYTHON=python3.12 engine"; exit 1; }
	@echo "setting up $(ENGINE) (once, a few minutes and 2.5 GB)"
	@test -x $(ENGINE_BIN)/python || $(PYTHON) -m venv $(ENGINE)
	@$(ENGINE_BIN)/pip install -q --disable-pip-version-check -e .
	@touch $@
$(ENGINE)/engine: $(ENGINE)/core leapmodel/execution/serving/cpu_engine.py
	@$(ENGINE_BIN)/python -m leapmodel.execution.serving.cpu_engine
	@$(ENGINE_BIN)/pip install -q --disable-pip-version-check -e '.[execution,train,test]'
	@touch $@

engine: $(ENGINE)/engine

test-engine: $(ENGINE)/engine
	@$(ENGINE_BIN)/python -c 'import vllm, torch, peft'  # else every test would be skipped
	$(ENGINE_BIN)/pytest -q tests/engine

# Up to an hour for the weights, the first time; then an hour or two. A run that broke off goes on.
measure: $(ENGINE)/engine
	$(ENGINE_BIN)/python -m leapmodel.execution.measuring.control_set -o $(MEASURED)/planning

measure-online: $(ENGINE)/engine
	$(ENGINE_BIN)/python -m leapmodel.execution.measuring.online_set -o $(MEASURED)/online

# The same with barely trained weights and ten tasks: it shows that everything works, no more.
measure-smoke: $(ENGINE)/engine
	rm -rf $(SMOKE)
	$(ENGINE_BIN)/python -m leapmodel.execution.measuring.control_set --smoke -o $(SMOKE)/planning --work $(SMOKE)/work
	$(ENGINE_BIN)/python -m leapmodel.execution.measuring.online_set --smoke -o $(SMOKE)/online --work $(SMOKE)/work-online

clean:
	rm -rf $(SMOKE) $(SCREENSHOTS) $(VENV) $(ENGINE) $(DEMO) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
