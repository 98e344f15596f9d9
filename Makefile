# Positional Encoding from Scratch: everything that is made, and from what.
#
# A step is redone when the content of its inputs changed, not their dates: tools/inputs.sh keeps the lists.
# Missing pieces of the system are found, installed where permitted, or named with their cure: tools/need.sh.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help course book serve grade assignment test test-all test-peers lint format bench-grading bench-scale bench-rope bench-alibi gpu clean FORCE

PYTHON ?=
PORT ?= 8000
JOBS ?=
PYTEST_EVERY := -n auto --dist loadscope --no-loadscope-reorder
PYTEST_ARGS ?= $(PYTEST_EVERY) -m "not long"
# COURSE_SOLUTIONS=hide builds a book without solutions, for a graded class.
COURSE_SOLUTIONS ?=
export COURSE_SOLUTIONS

# nbgrader calls alembic by its bare name.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

BIN := .venv/bin
RUN := $(BIN)/python
COURSE := $(RUN) -m autograder
# The book without solutions has a folder of its own, so that neither build overwrites the other.
ifeq ($(COURSE_SOLUTIONS),hide)
VARIANT := without-solutions
HTML := _build/without-solutions/_build/html
WHERE := --path-output _build/without-solutions --toc _build/.made/toc.yml
else
VARIANT := book
HTML := _build/html
WHERE :=
endif
BOOK := $(HTML)/index.html
TABLE := class/grades/grades.csv
MADE := _build/.made
MADE_BOOK := $(MADE)/$(VARIANT)
CLASS_MADE := class/.made
INPUTS := tools/inputs.sh

help:
	@echo 'Positional Encoding from Scratch'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  %-18s %s\n", $$1, $$2 }'
	@echo
	@echo '  make book COURSE_SOLUTIONS=hide    the book without solutions, for a graded class'
	@echo '  make serve PORT=8080               on another port'
	@echo '  make grade JOBS=4                  with four submissions at a time'
	@echo '  make test PYTEST_ARGS="-k rope"    some of the tests'
	@echo '  make course PYTHON=python3.12      with a certain Python, when .venv is first made'

course: .need-folder .need-sandbox $(MADE_BOOK) $(CLASS_MADE)/assignment $(CLASS_MADE)/graded ## everything: environment, book, assignment, a graded class
	@echo
	@cat class/grades/table.txt
	@echo
	@echo 'book:        $(BOOK)'
	@echo 'bundle:      class/bundle'
	@echo 'grade table: $(TABLE)'

book: $(MADE_BOOK) ## the book, executed
	@echo 'book: $(BOOK)'

serve: $(MADE_BOOK) ## the book on http://localhost:8000
	@echo 'http://localhost:$(PORT)/   (Ctrl-C ends it)'
	@$(RUN) -m http.server $(PORT) --bind 127.0.0.1 --directory $(HTML) >/dev/null || \
	    { echo 'Is port $(PORT) taken? make serve PORT=8080'; exit 1; }

assignment: $(CLASS_MADE)/assignment ## the notebooks to hand out: class/release and class/bundle
	@echo 'nbgrader release: class/release'
	@echo 'bundle:           class/bundle'

grade: $(CLASS_MADE)/graded ## grade class/submitted; the sample class where nothing is submitted
	@cat class/grades/table.txt
	@echo
	@echo 'grade table: $(TABLE)'

# The tests read the book with its solutions, whatever is built beside it. It is built while the code is looked at.
test: .need-sandbox .need-browser ## lint, types and every test but those that take minutes
	@mkdir -p $(MADE); \
	$(MAKE) --no-print-directory book COURSE_SOLUTIONS= >$(MADE)/book.log 2>&1 & book=$$!; \
	$(MAKE) --no-print-directory lint && $(RUN) -m pytest -q --doctest-modules solutions autograder; \
	looked=$$?; wait $$book || { cat $(MADE)/book.log; exit 1; }; exit $$looked
	$(RUN) -m pytest $(PYTEST_ARGS)

test-all: .need-database ## every test: the attacks through both front doors, kills, formgrader, PostgreSQL too
	@$(MAKE) --no-print-directory test PYTEST_ARGS='$(PYTEST_EVERY)'

test-peers: .venv/.made-peers ## the references beside other libraries' code, which it installs first
	$(RUN) -m pytest -m peers tests/test_peers_*.py

bench-scale: .need-sandbox .venv/.made ## grade N=10000 small submissions, and tell rate and memory
	@$(RUN) tools/bench_scale.py $(or $(N),10000) $(if $(JOBS),--jobs $(JOBS))

bench-rope: .venv/.made-peers ## a rotation on the CPU beside four libraries, which it installs first, and a plain copy
	@$(RUN) benchmarks/rope_cpu.py $(if $(WRITE),--write)

bench-alibi: .venv/.made ## attention with a bias on the CPU: stored whole, or made in steps
	@$(RUN) benchmarks/alibi.py $(if $(WRITE),--write)

# With `make test-peers` before it, and flash-attn where that builds, there are more peers to compare with.
gpu: .venv/.made-dev ## on a machine with a GPU: its tests, then the kernel beside its peers; under eight minutes
	@$(RUN) benchmarks/rope_gpu.py; told=$$?; \
	[ $$told = 2 ] || $(RUN) benchmarks/alibi.py --cuda --write || told=1; exit $$told

lint: .venv/.made-dev ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# N submissions; STOCK of them through stock nbgrader too, which takes several seconds for each.
bench-grading: .venv/.made .need-sandbox ## grading beside stock nbgrader: rates, ratio, where the time goes
	@$(RUN) tools/bench_grading.py $(if $(CHAPTER),--chapter $(CHAPTER)) $(if $(N),--submissions $(N)) \
	    $(if $(STOCK),--stock $(STOCK)) $(if $(JOBS),--jobs $(JOBS))

format: .venv/.made-dev ## let ruff repair and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A class of real students is never removed: only what can be made again.
clean: ## remove what was made; students' work and .venv stay
	@rm -rf _build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -e $(CLASS_MADE)/sample-class ]; then \
	    $(INPUTS) $(CLASS_MADE)/sample-now class/submitted; \
	    if cmp -s $(CLASS_MADE)/sample-now $(CLASS_MADE)/sample-class; then rm -rf class; fi; \
	fi
	@if [ -d class ]; then \
	    rm -rf $(CLASS_MADE) class/source class/release class/bundle class/bundle.zip; \
	    [ -e class/submitted ] || rm -f class/gradebook.db; \
	    rmdir class 2>/dev/null || echo 'kept: the submissions and grades in class/'; \
	fi
	@echo 'clean (.venv stays: rm -rf .venv removes it)'

# ---- the environment ----

.PHONY: .need-folder .need-sandbox .need-browser .need-database
.need-folder:
	@tools/need.sh folder

.need-sandbox:
	@tools/need.sh sandbox

.need-browser: .venv/.made-dev
	@tools/need.sh browser $(RUN)

.need-database:
	@tools/need.sh database

.venv/.made: requirements.txt | .need-folder
	@$(RUN) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    python=$$(tools/need.sh python "$(PYTHON)") && \
	    echo "== .venv with $$python" && rm -rf .venv && "$$python" -m venv .venv; }
	@echo '== requirements (the first time takes some minutes)'
	@$(RUN) -m pip install -qq --disable-pip-version-check -r requirements.txt || tools/need.sh after-pip
	@touch $@

.venv/.made-dev: requirements-dev.txt .venv/.made
	@$(RUN) -m pip install -qq --disable-pip-version-check -r requirements-dev.txt || tools/need.sh after-pip
	@touch $@

# Both lists at once, so that a peer that wants another version of what the course has is refused, not obeyed.
.venv/.made-peers: requirements-peers.txt .venv/.made-dev
	@echo '== peers (the first time takes some minutes)'
	@$(RUN) -m pip install -qq --disable-pip-version-check -r requirements-dev.txt -r requirements-peers.txt || \
	    tools/need.sh after-pip
	@touch $@

# ---- the book ----

$(MADE_BOOK).inputs: FORCE | .need-folder
	@$(INPUTS) $@ --product $(BOOK) book solutions benchmarks autograder/checks autograder/misconceptions requirements.txt \
	    _config.yml _toc.yml

# Pages of an earlier build go first: a page that was taken out must not stay.
$(MADE_BOOK): $(MADE_BOOK).inputs .venv/.made
	@echo '== book'
	@rm -rf $(HTML)
	@grep -v 'with solutions only' _toc.yml >$(MADE)/toc.yml
	$(BIN)/jupyter-book build . -W -n --keep-going --all $(WHERE)
	@touch $@

# ---- the class ----

$(CLASS_MADE)/assignment.inputs: FORCE | .need-folder
	@$(INPUTS) $@ --product class/source --product class/release --product class/bundle \
	    book solutions autograder nbgrader_config.py requirements.txt _toc.yml

$(CLASS_MADE)/assignment: $(CLASS_MADE)/assignment.inputs .venv/.made
	@echo '== assignment'
	$(COURSE) generate
	@for folder in class/source/*/; do \
	    name=$$(basename "$$folder"); \
	    echo "nbgrader generate_assignment $$name"; \
	    $(RUN) -m nbgrader generate_assignment --force "$$name" || exit 1; \
	done
	@echo '== release'
	$(COURSE) release
	@touch $@

# The sample class is written where nobody submitted anything, and renewed only while nobody else's work lies there.
$(CLASS_MADE)/sample: $(CLASS_MADE)/assignment
	@if [ -d class/submitted ] && [ -e $(CLASS_MADE)/sample-class ]; then \
	    $(INPUTS) $(CLASS_MADE)/sample-now class/submitted; \
	    if cmp -s $(CLASS_MADE)/sample-now $(CLASS_MADE)/sample-class; then rm -rf class/submitted; fi; \
	fi
	@if [ -z "$$(ls -A class/submitted 2>/dev/null)" ]; then \
	    echo '== sample class' && $(COURSE) sample-class && \
	    rm -f $(CLASS_MADE)/sample-class && $(INPUTS) $(CLASS_MADE)/sample-class class/submitted; \
	fi
	@touch $@

$(CLASS_MADE)/graded.inputs: FORCE $(CLASS_MADE)/sample
	@$(INPUTS) $@ --product $(TABLE) --product class/grades/table.txt class/submitted

$(CLASS_MADE)/graded: $(CLASS_MADE)/graded.inputs $(CLASS_MADE)/assignment | .need-sandbox
	@echo '== grading'
	@$(COURSE) grade class/submitted --out class/grades $(if $(JOBS),--jobs $(JOBS)) >/dev/null
	@touch $@

FORCE:
