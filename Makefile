# alloc-kernels. `make help` lists the targets; config.mk holds every setting.
# Files are found by wildcard: a new kernel, backend, test or sweep edits no list.
include config.mk

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

B := $(BUILD)
$(if $(word 2,$(B)),$(error BUILD = '$(B)': make cannot handle a folder with blanks))
# What a user gives is data: one quoted word of the shell.
quote = '$(subst ','\'',$(1))'
# V=1 shows the commands.
Q := $(if $(V),,@)
SAN := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# -fno-builtin: gcc may otherwise delete or merge malloc/free pairs, the very thing under test.
CFLAGS_ALL := -std=gnu11 $(OPT) $(WARN) $(SAN) -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc \
              -fno-builtin-realloc -MMD -MP -D_GNU_SOURCE -Ikernels -Ikernels/harness -Ikernels/counters \
              -Iexperiments/runner -Iexperiments/trace $(CFLAGS)

# ---- what there is ---------------------------------------------------------------------------
HARNESS_SRC := $(sort $(wildcard kernels/harness/*.c experiments/trace/*.c))
SIM_SRC     := $(sort $(wildcard kernels/simulator/*.c))
KERNELS     := $(basename $(notdir $(sort $(wildcard kernels/*.c))))
APPS        := $(basename $(notdir $(sort $(wildcard kernels/apps/*.c))))
BACKENDS    := $(basename $(notdir $(sort $(wildcard kernels/counters/*.c))))
RUNNER_SRC  := $(sort $(wildcard experiments/runner/*.c))
UNIT_TESTS  := $(basename $(notdir $(sort $(wildcard tests/unit/*.c))))
CONFORMANCE := $(basename $(notdir $(sort $(wildcard tests/conformance/*.c tests/conformance/*.cc))))
PLUGINS     := $(basename $(notdir $(sort $(wildcard tests/conformance/plugins/*.c))))
TLFL_TESTS  := $(basename $(notdir $(sort $(wildcard tests/tlfl/*.c))))
MISUSES     := $(basename $(notdir $(sort $(wildcard tests/misuse/*.c))))
TLFL_SRC    := $(sort $(wildcard allocators/tlfl/*.c))
-include allocators/tlfl/variants.mk
# The stress, built as each variant whose inside is the plain one's, and that does more than read the clock.
STRESSES    := $(patsubst %,stress-%,$(filter-out hardened %clocked,$(TLFL_VARIANTS)))

# An optional backend is built only where its library is installed; `ak doctor` names what is missing.
have = $(shell echo 'int main(void){return 0;}' | $(CC) -x c -include $(1) - $(2) -o /dev/null 2>/dev/null && echo yes)
HAVE_PAPI   := $(call have,papi.h,-lpapi)
HAVE_LIKWID := $(call have,likwid-marker.h,-llikwid)
BACKENDS_BUILT := $(filter-out $(if $(HAVE_PAPI),,papi) $(if $(HAVE_LIKWID),,likwid),$(BACKENDS))
LIBS_papi   := -lpapi
LIBS_likwid := -llikwid
CFLAGS_likwid := -DLIKWID_PERFMON

# An application kernel is kernels/apps/NAME.c with all of kernels/apps/NAME/*.c. Its libs.mk says what it is linked with
# (LIBS_NAME), the headers that takes (NEEDS_NAME), the packages that bring them (PACKAGES_NAME), and modules of others that it
# takes too (SHARED_NAME). One that cannot be built here leaves a file NAME.lacks in place of the program, for `ak` to tell.
-include $(wildcard kernels/apps/*/libs.mk)
APPS_BUILT  := $(foreach a,$(APPS),$(if $(filter no,$(foreach h,$(NEEDS_$(a)),$(or $(call have,$(h)),no))),,$(a)))
APPS_LACK   := $(filter-out $(APPS_BUILT),$(APPS))

LIBS_HARNESS := -lhwloc -ljansson -lpthread -ldl -lm
LIBS_RUNNER  := -linih $(LIBS_HARNESS)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
HARNESS_LIB := $(B)/obj/libharness.a
SIM_LIB     := $(B)/obj/libsimulator.a
# The simulated machine runs programs of x86-64 only.
SIM_PLUGIN  := $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),$(B)/lib/simulator.so)
RUNNER_OBJ  := $(call obj,$(RUNNER_SRC))
TLFL_LIBS   := $(B)/lib/libtlfl.so $(TLFL_VARIANTS:%=$(B)/lib/libtlfl-%.so)
WITNESS     := $(B)/lib/libak-witness.so
RECORDER    := $(B)/lib/libak-record.so
PROGRAMS    := $(B)/bin/ak $(B)/bin/ak-launch $(if $(filter item_store,$(APPS_BUILT)),$(B)/bin/ak-item-load) $(B)/bin/ak-http-load
KERNEL_BINS := $(KERNELS:%=$(B)/kernels/%) $(APPS_BUILT:%=$(B)/kernels/%) $(APPS_LACK:%=$(B)/kernels/%.lacks)
BACKEND_SO  := $(BACKENDS_BUILT:%=$(B)/counters/%.so)
TEST_BINS   := $(UNIT_TESTS:%=$(B)/tests/unit/%) $(CONFORMANCE:%=$(B)/tests/conformance/%) \
               $(TLFL_TESTS:%=$(B)/tests/tlfl/%) $(STRESSES:%=$(B)/tests/tlfl/%) \
               $(MISUSES:%=$(B)/tests/misuse/%) $(PLUGINS:%=$(B)/tests/conformance/plugins/%.so) \
               $(if $(SIM_PLUGIN),$(B)/tests/sim/known $(B)/tests/sim/calls)

# ---- build -----------------------------------------------------------------------------------
.PHONY: all
all: $(PROGRAMS) $(KERNEL_BINS) $(BACKEND_SO) $(TLFL_LIBS) $(B)/lib/libbump.so $(WITNESS) $(RECORDER) $(SIM_PLUGIN) ## build everything

# Changed flags rebuild: every object depends on a file that holds the command line it was made with.
FLAGS_STAMP := $(B)/obj/flags
FLAGS_TEXT  := $(CC) $(CFLAGS_ALL) $(TLFL_CFLAGS)
$(shell mkdir -p $(B)/obj && printf '%s\n' $(call quote,$(FLAGS_TEXT)) | cmp -s - $(FLAGS_STAMP) || printf '%s\n' $(call quote,$(FLAGS_TEXT)) > $(FLAGS_STAMP))

$(B)/obj/%.o: %.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC $@")
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

$(HARNESS_LIB): $(call obj,$(HARNESS_SRC))
	@rm -f $@
	$(if $(V),,@echo "  AR $@")
	$(Q)ar rcs $@ $^

$(SIM_LIB): $(call obj,$(SIM_SRC))
	@rm -f $@
	$(if $(V),,@echo "  AR $@")
	$(Q)ar rcs $@ $^

$(B)/kernels/%: $(B)/obj/kernels/%.o $(HARNESS_LIB)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) -rdynamic $< $(HARNESS_LIB) $(LIBS_HARNESS) $(LDFLAGS) -o $@

define app_rule
$(B)/kernels/$(1): $(call obj,kernels/apps/$(1).c $(sort $(wildcard kernels/apps/$(1)/*.c)) $(SHARED_$(1))) $(HARNESS_LIB)
	@mkdir -p $$(@D) && rm -f $$@.lacks
	$$(if $$(V),,@echo "  LD $$@")
	$$(Q)$$(CC) $$(CFLAGS_ALL) -rdynamic $$^ $$(LIBS_$(1)) $$(LIBS_HARNESS) $$(LDFLAGS) -o $$@
endef
$(foreach a,$(APPS_BUILT),$(eval $(call app_rule,$(a))))

$(B)/kernels/%.lacks: FORCE
	@mkdir -p $(@D) && rm -f $(B)/kernels/$* && echo '$(or $(PACKAGES_$*),its libraries)' > $@

.PHONY: FORCE
FORCE:

$(B)/counters/%.so: kernels/counters/%.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $(CFLAGS_$*) -fPIC -shared $< $(LIBS_$*) $(LDFLAGS) -MF $(B)/obj/counters-$*.d -o $@

$(B)/bin/ak: $(RUNNER_OBJ) $(HARNESS_LIB) $(SIM_LIB)
	@mkdir -p $(@D)
	@printf '%s\n' $(call quote,$(CURDIR)) > $(B)/root
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) -rdynamic $(RUNNER_OBJ) $(HARNESS_LIB) $(SIM_LIB) $(LIBS_RUNNER) $(LDFLAGS) -o $@

$(B)/bin/ak-launch: $(B)/obj/experiments/launcher/launch.o
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $< $(LDFLAGS) -o $@

# What sends requests to the kernel item_store: no kernel, and not under test.
$(B)/bin/ak-item-load: $(call obj,$(sort $(wildcard kernels/apps/item_store/load/*.c)) kernels/apps/item_store/items.c \
                         kernels/harness/histogram.c)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $^ -lpq -ljansson -lm $(LDFLAGS) -o $@

# The open loop of the kernel http_server: no kernel, and not under test.
$(B)/bin/ak-http-load: $(call obj,$(addprefix kernels/apps/http_server/,load/main.c client.c tree.c) kernels/harness/histogram.c)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $^ -lpthread -lm $(LDFLAGS) -o $@

# tlfl and its variants: the same sources, one set of flags each (allocators/tlfl/variants.mk).
# Never instrumented by SANITIZE: an allocator cannot run on top of the sanitizer's own. Never unloaded: a thread that
# used it calls its destructor at exit, also after a dlclose. Initialised first: its fork handlers have to be the outermost.
TLFL_BUILD = $(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE $(TLFL_CFLAGS) -fPIC -shared -Wl,-z,nodelete,-z,initfirst
$(B)/lib/libtlfl.so: $(TLFL_SRC) $(wildcard allocators/tlfl/*.h) $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(TLFL_BUILD) $(TLFL_SRC) -lpthread -Wl,-soname,$(@F) -o $@

$(B)/lib/libtlfl-%.so: $(TLFL_SRC) $(wildcard allocators/tlfl/*.h) $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(TLFL_BUILD) $(TLFL_FLAGS_$*) $(TLFL_SRC) -lpthread -Wl,-soname,$(@F) -o $@

$(B)/lib/libbump.so: allocators/bump/bump.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(TLFL_BUILD) $< -Wl,-soname,$(@F) -o $@

# What tells which allocator served a process of `ak compare`. Never instrumented by SANITIZE: it goes into any program.
$(WITNESS): experiments/witness/witness.c experiments/witness/witness.h $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE $(CFLAGS) -fPIC -shared -fvisibility=hidden $< -ldl $(LDFLAGS) -o $@

# What writes down a program's allocation events for `ak record`. Initialised first, so that nothing of the program comes before.
RECORDER_SRC := $(sort $(wildcard experiments/recorder/*.c))
$(RECORDER): $(RECORDER_SRC) $(wildcard experiments/recorder/*.h) experiments/trace/event.h $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -Iexperiments/trace $(CFLAGS) -fno-builtin -fPIC -shared \
	  -fvisibility=hidden -Wl,-z,nodelete,-z,initfirst $(RECORDER_SRC) -ldl -lpthread $(LDFLAGS) -o $@

# The simulated machine, a plugin of QEMU. Never instrumented by SANITIZE: QEMU is not.
$(B)/lib/simulator.so: $(SIM_SRC) $(wildcard kernels/simulator/*.h) kernels/harness/histogram.h $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE $(CFLAGS) -fPIC -shared -fvisibility=hidden $(SIM_SRC) -lpthread $(LDFLAGS) -o $@

# The programs of the benchmark (experiments/bench).
$(B)/bench/%: experiments/bench/%.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -fno-builtin-malloc -fno-builtin-free $(CFLAGS) $< -ldl $(LDFLAGS) -o $@

# The parent of processes whose resident size is measured: small.
$(B)/bench/launches: LDFLAGS += -static
$(B)/bench/lib%.so: experiments/bench/%.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) -std=gnu11 $(OPT) $(WARN) -fPIC -shared $(CFLAGS) $< $(LDFLAGS) -o $@

# ---- tests -----------------------------------------------------------------------------------
RUNNER_TESTABLE := $(filter-out %/main.o,$(RUNNER_OBJ))
$(B)/tests/sim/%: tests/sim/%.c kernels/simulator/protocol.h kernels/simulator/model.h $(B)/obj/kernels/harness/histogram.o $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $< $(B)/obj/kernels/harness/histogram.o -lpthread -lm $(LDFLAGS) -MF $(B)/obj/sim-$*.d -o $@

$(B)/tests/unit/%: $(B)/obj/tests/unit/%.o $(RUNNER_TESTABLE) $(HARNESS_LIB) $(SIM_LIB)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) -rdynamic $< $(RUNNER_TESTABLE) $(HARNESS_LIB) $(SIM_LIB) -lcmocka $(LIBS_RUNNER) $(LDFLAGS) -o $@

# Benchmarks of parts: they end in a table, and no test runs them.
$(B)/tests/bench/%: $(B)/obj/tests/bench/%.o $(SIM_LIB)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $^ $(LDFLAGS) -o $@

$(B)/tests/conformance/%: tests/conformance/%.c $(wildcard tests/conformance/*.h) $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $< -lpthread -ldl $(LDFLAGS) -MF $(B)/obj/conformance-$*.d -o $@

$(B)/tests/conformance/%: tests/conformance/%.cc $(wildcard tests/conformance/*.h) $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CXX) -std=c++17 -fsized-deallocation $(OPT) -Wall -Wextra -Werror -Wshadow $(SAN) -D_GNU_SOURCE $< -lpthread -ldl $(LDFLAGS) -o $@

$(B)/tests/conformance/plugins/%.so: tests/conformance/plugins/%.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -shared $< $(LDFLAGS) -MF $(B)/obj/plugin-$*.d -o $@

TLFL_TEST_BUILD = $(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE $(TLFL_CFLAGS) $(SAN) -Iallocators/tlfl -DTLFL_TEST
$(B)/tests/tlfl/%: tests/tlfl/%.c $(TLFL_SRC) $(wildcard allocators/tlfl/*.h) $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(TLFL_TEST_BUILD) $< $(TLFL_SRC) -lpthread $(LDFLAGS) -o $@

$(B)/tests/tlfl/stress-%: tests/tlfl/stress.c $(TLFL_SRC) $(wildcard allocators/tlfl/*.h) $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(TLFL_TEST_BUILD) $(TLFL_FLAGS_$*) $< $(TLFL_SRC) -lpthread $(LDFLAGS) -o $@

# Misuse programs: one a category. The compiler must take the calls as they stand.
MISUSE_OBJ := $(call obj,$(sort $(wildcard tests/misuse/driver/*.c)))
$(MISUSE_OBJ) $(MISUSES:%=$(B)/obj/tests/misuse/%.o): CFLAGS_ALL += -fno-builtin
$(B)/tests/misuse/%: $(B)/obj/tests/misuse/%.o $(MISUSE_OBJ)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD $@")
	$(Q)$(CC) $(CFLAGS_ALL) $^ -lpthread -ldl $(LDFLAGS) -o $@

.PHONY: tests unit-tests tlfl-tests counters kernels
tests: all $(TEST_BINS)
unit-tests: $(UNIT_TESTS:%=$(B)/tests/unit/%)
tlfl-tests: $(TLFL_TESTS:%=$(B)/tests/tlfl/%)
counters: $(BACKEND_SO)
kernels: $(KERNEL_BINS) $(BACKEND_SO)

.PHONY: check check-long
check: deps ## install what is missing, build, run every test (under 15 minutes on 2 cores)
	@$(MAKE) --no-print-directory -j2 tests
	@BUILD=$(B) CC=$(CC) tests/run.sh

check-long: deps-long check ## the same, then the long campaigns (installs the programs that they use)
	@BUILD=$(B) CC=$(CC) tests/long.sh

# ---- measure ---------------------------------------------------------------------------------
AK := $(B)/bin/ak
comma := ,
empty :=
commas = $(subst $(empty) ,$(comma),$(strip $(1)))
PIPELINE := paper sensitivity contention clocked lock_hold fastpath falseshare remote latency planted fragment \
            ndjson ndjson-share file_hash fastpath-anatomy coherence quantum slack timed \
            lock_hold-sim fastpath-sim latency-sim model-sim model-sizes-sim model-locked-sim variants-sim
APP_SWEEPS := $(filter $(basename $(notdir $(wildcard experiments/*.sweep))),ndjson ndjson-share ndjson-musl file_hash \
              http_server http_server-rate http_server-pool http_server-musl http_foreign item_store item_store-share redis \
              replay replay-memory)

.PHONY: deps
deps: ## install what is missing (apt; prints the list first; silent when all is there)
	@experiments/deps.sh

.PHONY: deps-long
deps-long: deps ## install what only make check-long needs: programs, compilers for other machines, emulators
	@experiments/deps.sh --long

.PHONY: deps-apps
deps-apps: deps ## install what the applications need: servers, a database, loads, musl
	@experiments/deps.sh --apps

.PHONY: reproduce
reproduce: deps ## build, run the paper's sweeps, fit, plot, build paper/paper.pdf (PRESET=quick or paper)
	@$(MAKE) --no-print-directory -j2 all
	@$(MAKE) --no-print-directory pipeline

# Every sweep of the pipeline into a folder of its own; one that is there already is resumed. Failed rows do not stop
# the others: they are rows, and the paper counts them. The status of the whole is theirs.
.PHONY: pipeline
pipeline:
	@experiments/pipeline.sh $(AK) $(call quote,$(PRESET)) $(call quote,$(RESULTS)) $(PIPELINE)

.PHONY: apps
apps: deps-apps ## the applications behind the claims: all their sweeps, then the paper (PRESET=quick or paper)
	@$(MAKE) --no-print-directory -j2 all
	@$(MAKE) --no-print-directory musl || echo "without static programs of musl: their sweeps are skipped" >&2
	@BUILD=$(B) experiments/traces.sh
	@experiments/pipeline.sh $(AK) $(call quote,$(PRESET)) $(call quote,$(RESULTS)) $(APP_SWEEPS)

.PHONY: smoke
smoke: all ## the whole pipeline, small (under 1 minute once built)
	@rm -rf $(B)/smoke
	@mkdir -p $(B)/smoke/paper && cp paper/*.tex paper/*.bib paper/*.csv $(B)/smoke/paper/
	@PAPER=$(B)/smoke/paper experiments/pipeline.sh $(AK) smoke $(B)/smoke/results $(PIPELINE)

.PHONY: sweep
sweep: all ## a sweep: SWEEP=contention THREADS="1 2 4" ALLOCATORS="glibc tlfl" OUT=results/x
	$(AK) run $(call quote,$(SWEEP)) --preset $(call quote,$(PRESET)) --threads $(call quote,$(call commas,$(THREADS))) \
	  --allocators $(call quote,$(call commas,$(ALLOCATORS))) --out $(call quote,$(OUT)) \
	  $$(test ! -e $(call quote,$(OUT)/runs.csv) || echo --resume)

.PHONY: bench-overhead
bench-overhead: all ## what each kernel costs by itself, with a stub for the allocator
	@BUILD=$(B) experiments/overhead.sh

.PHONY: misuse
misuse: all $(MISUSES:%=$(B)/tests/misuse/%) ## which allocator stops which misuse: the tables of docs/misuse.md
	@BUILD=$(B) tests/misuse/calibrate.sh --doc docs/misuse.md

.PHONY: peers bench-tlfl bench-sim
bench-sim: all ## what a simulated run costs beside cachegrind's, the table in docs/simulator.md
	@BUILD=$(B) experiments/bench/simulator.sh
peers: all ## download newer allocators as rivals (Debian's later releases; nothing is installed)
	@BUILD=$(B) experiments/peers.sh
.PHONY: musl musl-allocators mimalloc-secure
include experiments/musl/musl.mk
musl: musl-allocators ## every kernel as a static program of musl, with each allocator linked in (MUSL_ALLOCATORS="name=path.a")
	@$(MAKE) --no-print-directory musl-kernels
musl-allocators: ## build from Debian's sources what `make musl` links, and mimalloc in secure mode
	@BUILD=$(B) experiments/musl.sh
mimalloc-secure: ## build mimalloc in secure mode alone, from Debian's source package
	@BUILD=$(B) experiments/musl.sh secure
$(if $(filter bench-tlfl,$(MAKECMDGOALS)),$(if $(filter-out short full,$(BENCH)),$(error BENCH='$(BENCH)': expected short or full)))
bench-tlfl: all ## tlfl beside its rivals, the table in docs/tlfl.md (BENCH=short, 12 minutes, or BENCH=full, an hour)
	@BUILD=$(B) experiments/bench/run.sh $(call quote,--$(BENCH)) --doc docs/tlfl.md

.PHONY: fit figures paper claims reference
fit: ## fit the cost model of RESULTS: paper/generated/fit.csv, model.csv, heldout.csv
	@Rscript analysis/fit.R $(call quote,$(RESULTS)) paper/generated
figures: fit ## draw every figure of RESULTS as PDF and SVG into paper/generated/
	@Rscript analysis/figures.R $(call quote,$(RESULTS)) paper/generated
claims: ## the published claims, tested on RESULTS: the ledger, and paper/generated/claims-verdicts.csv
	@COLUMNS=$$(tput cols 2>/dev/null || echo 80) Rscript analysis/claims.R $(call quote,$(RESULTS)) paper/generated
reference: ## make RESULTS the run that paper/reference/ keeps and the README tells of
	@Rscript analysis/reference.R $(call quote,$(RESULTS)) paper/reference
	@experiments/bench/splice.sh README.md paper/reference/readme.md claims && rm paper/reference/readme.md
paper: ## build paper/paper.pdf from RESULTS=results/reproduce
	@analysis/paper.sh $(call quote,$(RESULTS))

# ---- habits ----------------------------------------------------------------------------------
.PHONY: help
help: ## every target, one line each
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | sort | awk -F '\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

.PHONY: format
format: ## clang-format over all C files
	@git ls-files '*.c' '*.h' | xargs clang-format -i

.PHONY: schema
schema: ## experiments/schema.json from schema.md (needs jq)
	@jq -n -R -f experiments/schema.jq experiments/schema.md > $(B)/schema.json && cp $(B)/schema.json experiments/schema.json

.PHONY: lint
lint: ## clang-tidy, cppcheck, shellcheck, lintr, where installed
	@tests/lint.sh

ROOT = $(DESTDIR)$(PREFIX)
.PHONY: install
install: all ## install below PREFIX (DESTDIR is honoured)
	install -d $(call quote,$(ROOT)/bin) $(call quote,$(ROOT)/lib/alloc-kernels/kernels) $(call quote,$(ROOT)/lib/alloc-kernels/musl) \
	  $(call quote,$(ROOT)/lib/alloc-kernels/counters/groups) $(call quote,$(ROOT)/share/alloc-kernels/experiments/presets) \
	  $(call quote,$(ROOT)/share/alloc-kernels/experiments/machines)
	install -m 755 $(PROGRAMS) $(call quote,$(ROOT)/bin/)
	install -m 755 $(TLFL_LIBS) $(B)/lib/libbump.so $(WITNESS) $(RECORDER) $(call quote,$(ROOT)/lib/)
	install -m 755 $(filter-out %.lacks,$(KERNEL_BINS)) $(call quote,$(ROOT)/lib/alloc-kernels/kernels/)
	install -m 755 $(BACKEND_SO) $(call quote,$(ROOT)/lib/alloc-kernels/counters/)
	$(if $(SIM_PLUGIN),install -m 755 $(SIM_PLUGIN) $(call quote,$(ROOT)/lib/alloc-kernels/))
	install -m 644 $(wildcard kernels/counters/groups/*.txt) $(call quote,$(ROOT)/lib/alloc-kernels/counters/groups/)
	[ ! -d $(MUSL)/kernels ] || cp -r $(MUSL)/kernels/. $(call quote,$(ROOT)/lib/alloc-kernels/musl/)
	install -m 644 allocators/registry.ini $(call quote,$(ROOT)/share/alloc-kernels/)
	install -m 644 $(wildcard experiments/*.sweep) experiments/schema.md experiments/schema.json $(call quote,$(ROOT)/share/alloc-kernels/experiments/)
	install -m 644 $(wildcard experiments/presets/*.ini) $(call quote,$(ROOT)/share/alloc-kernels/experiments/presets/)
	install -m 644 $(wildcard experiments/machines/*.ini) $(call quote,$(ROOT)/share/alloc-kernels/experiments/machines/)

.PHONY: clean
clean: ## remove what was built (results stay)
	rm -rf $(B) paper/generated $(addprefix paper/paper.,pdf aux bbl blg fdb_latexmk fls log out)

.SECONDARY:
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
