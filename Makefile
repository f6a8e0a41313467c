# Both 'make demo' and 'make test' begin with 'make setup'; nothing else has to be done by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TOOLS  := $(VENV)/.tools
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo test test-no-gl test-all lint bench docs wheel wheel-test clean

setup: $(STAMP)

COMPILED := $(wildcard src/maniple/core/*.c src/maniple/*/*/*.cc src/maniple/*/*/*.inc src/maniple/*/*/*.h src/maniple/splat/*.cc src/maniple/splat/*.inc src/maniple/splat/*.h)

$(STAMP): pyproject.toml constraints.txt scripts/setup_system.sh $(COMPILED)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed. Type: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@PYTHON=$(PYTHON) bash scripts/setup_system.sh
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "The venv module is missing. Type: apt-get install python3-venv"; exit 1; }
	@echo "Installing the pinned packages into $(VENV) ..."
	@$(INSTALL) -e '.[data,plot,train,view]'
	@touch $(STAMP)

# What only the tests need comes after what everybody needs: a demo should not wait for it.
$(TOOLS): $(STAMP)
	@echo "Installing the test tools ..."
	@$(INSTALL) -e '.[dev,plot,train]'
	@touch $(TOOLS)

demo: setup
	@$(BIN)/maniple demo --out demo

lint: $(TOOLS)
	$(BIN)/ruff check src tests bench examples
	$(BIN)/ruff format --check src tests bench examples
	$(BIN)/pyright
	$(BIN)/lint-imports

test: lint
	$(BIN)/python scripts/run_tests.py

# Linux and root only: the libraries are hidden in a mount namespace.
test-no-gl: $(TOOLS)
	scripts/without_gl.sh $(BIN)/maniple demo --out demo
	scripts/without_gl.sh $(BIN)/python scripts/run_tests.py

test-all: lint
	@$(INSTALL) -e '.[cluster]'
	$(BIN)/python -m pytest

bench: setup
	$(BIN)/python bench/peers.py

# The variable silences an advertisement; warnings of our own pages are errors.
docs: setup
	@test -x $(BIN)/mkdocs || $(INSTALL) -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "look at  build/site/index.html (its search wants a server: python3 -m http.server -d build/site)"

wheel: setup
	@rm -rf dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
	@ls dist/*.whl

# In an environment of its own, so that nothing of this folder helps.
wheel-test: wheel
	@rm -rf build/wheel-test && $(PYTHON) -m venv build/wheel-test
	@build/wheel-test/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	@cd build && wheel-test/bin/python ../scripts/try_wheel.py

clean:
	rm -rf $(VENV) build dist demo src/*.egg-info
	find src -name "*.so" -delete
