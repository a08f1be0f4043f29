# A newcomer needs two of these: make demo, make test. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test test-all fuzz coverage check format docs dist bench clean

setup: $(READY)

# A recent pip resolves twice as fast. Modules are compiled when they are first imported: most never are.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "hcpf needs Python 3.11 or newer; choose one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@

# What a shop's customers will probably buy next, and for how much: on the bundled data.
demo: setup
	$(BIN)/hcpf compare retail -K 10 --quick
	$(BIN)/hcpf fit retail --element gamma --vary-by both -K 20 --seed 0 -o demo/model --overwrite
	$(BIN)/hcpf info demo/model --names retail
	$(BIN)/hcpf recommend demo/model 12347 12352 17850 -n 5 --names retail
	$(BIN)/hcpf evaluate retail --element gamma --vary-by both -K 20 --seed 0 -o demo/evaluation.json --overwrite
	$(BIN)/hcpf report demo/model --evaluation demo/evaluation.json -o demo/report.html --names retail --overwrite
	@echo "Open demo/report.html in a browser; then try a table of your own: $(BIN)/hcpf info YOUR.csv"

test: setup
	$(BIN)/python -m pytest -n 2

# Also the tests marked slow, and five times as many random examples.
test-all: setup
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n 2 -m "slow or not slow"

# Random models on random data from fit to load, extreme values included: make fuzz LIVES=5000
LIVES ?= 1000
fuzz: setup
	HCPF_FUZZ=$(LIVES) HCPF_FUZZ_REPORT=/dev/stdout $(BIN)/python -m pytest -s tests/model/test_whole_life.py

# The share of lines and branches that the tests run. Compiled kernels and subprocesses are not seen.
coverage: setup
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation, into site/; open site/index.html.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo '*' > site/.gitignore

# The source distribution, and the wheel that is built from it, into dist/.
dist: setup
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# Speed and memory against other libraries, in an environment of their own. A Parquet file of
# user, item, value adds the time to quality: make bench DATA=ratings.parquet
BENCH := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
BENCH_PINS := $(CURDIR)/benchmarks/constraints.txt
BENCH_PIP := PIP_CONSTRAINT="$(BENCH_PINS)" PIP_BUILD_CONSTRAINT="$(BENCH_PINS)" \
	$(BENCH)/python -m pip install --quiet --disable-pip-version-check

$(BENCH_READY): pyproject.toml benchmarks/constraints.txt
	$(PYTHON) -m venv .venv-bench
	@echo '*' > .venv-bench/.gitignore
	$(BENCH_PIP) -e . pandas pyarrow matplotlib
	@for peer in hpfrec implicit cornac poismf; do echo "installing $$peer"; \
		$(BENCH_PIP) $$peer || echo "$$peer cannot be installed here and is left out"; done
	@touch $@

bench: $(BENCH_READY)
	$(BENCH)/python benchmarks/iteration.py
	$(BENCH)/python benchmarks/scaling.py
	$(BENCH)/python benchmarks/startup.py
	$(if $(DATA),$(BENCH)/python benchmarks/quality.py "$(DATA)")

clean:
	rm -rf .venv site dist .coverage .pytest_cache .ruff_cache .hypothesis
