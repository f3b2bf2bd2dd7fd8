# musl.mk: every kernel as a static program of musl, with each allocator linked in: $(MUSL)/kernels/ALLOCATOR/KERNEL. The same
# sources as the kernels of this system's C library. `make musl` builds what is needed (experiments/musl.sh) and then these.
MUSL    := $(B)/musl
MUSL_CC := musl-gcc
# An allocator is the archive of the same name in $(MUSL)/lib, tlfl's sources, or what MUSL_ALLOCATORS names. `musl` has none.
MUSL_NAMED := $(foreach a,$(MUSL_ALLOCATORS),$(firstword $(subst =, ,$(a))))
MUSL_LINKED := musl-tlfl musl-jemalloc musl-mimalloc $(MUSL_NAMED)
MUSL_FLAGS := -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -MMD -MP -isystem $(MUSL)/include $(CFLAGS)
MUSL_KERNEL_FLAGS := -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc -fno-builtin-realloc $(filter -I%,$(CFLAGS_ALL))
MUSL_LIBS := -lhwloc -ljansson -lpthread -ldl -lm
# An application is built where all of its libraries are there for musl, and where it is itself what is under test: the server
# of another package is linked with this system's library.
MUSL_SUBJECTS := $(basename $(notdir $(shell grep -l '\.subject *= *true' kernels/apps/*.c)))
MUSL_APPS := $(foreach a,$(filter-out $(MUSL_SUBJECTS),$(APPS)),$(if $(filter-out $(MUSL_LIBS) -lrt,$(LIBS_$(a))),,$(a)))
musl_obj = $(patsubst %.c,$(MUSL)/obj/%.o,$(1))

$(MUSL)/lib/libhwloc.a $(MUSL)/lib/libjansson.a $(MUSL)/lib/musl-jemalloc.a $(MUSL)/lib/musl-mimalloc.a:
	@echo "$@ is not there: make musl-allocators" >&2; exit 3

$(MUSL)/obj/kernels/%.o: kernels/%.c $(FLAGS_STAMP) | $(MUSL)/lib/libhwloc.a $(MUSL)/lib/libjansson.a
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC $@")
	$(Q)$(MUSL_CC) $(MUSL_FLAGS) $(MUSL_KERNEL_FLAGS) -c $< -o $@

$(MUSL)/obj/%.o: %.c $(FLAGS_STAMP) | $(MUSL)/lib/libhwloc.a
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC $@")
	$(Q)$(MUSL_CC) $(MUSL_FLAGS) $(TLFL_CFLAGS) -c $< -o $@

$(MUSL)/lib/libharness.a: $(call musl_obj,$(HARNESS_SRC))
$(MUSL)/lib/musl-tlfl.a: $(call musl_obj,$(TLFL_SRC))
$(MUSL)/lib/libharness.a $(MUSL)/lib/musl-tlfl.a:
	@mkdir -p $(@D) && rm -f $@
	$(if $(V),,@echo "  AR $@")
	$(Q)ar rcs $@ $^

# The archive's code in one piece, so that the program can tell what is the allocator's.
$(MUSL)/lib/musl-%.o: $(MUSL)/lib/musl-%.a $(call musl_obj,experiments/musl/marks.c) experiments/musl/join.ld experiments/musl/join.sh
	$(if $(V),,@echo "  LD $@")
	$(Q)experiments/musl/join.sh $< $(call musl_obj,experiments/musl/marks.c) $@
define musl_named
$(MUSL)/lib/$(firstword $(subst =, ,$(1))).o: $(lastword $(subst =, ,$(1))) $(call musl_obj,experiments/musl/marks.c) experiments/musl/join.ld experiments/musl/join.sh
	$(if $(V),,@echo "  LD $$@")
	$$(Q)experiments/musl/join.sh $$< $(call musl_obj,experiments/musl/marks.c) $$@
endef
$(foreach a,$(MUSL_ALLOCATORS),$(eval $(call musl_named,$(a))))

# A program: $(1) allocator, $(2) kernel, $(3) its sources, $(4) the allocator's object, $(5) its libraries, $(6) further
# names that the C library's own malloc brings.
define musl_program
$(MUSL)/kernels/$(1)/$(2): $(call musl_obj,$(3)) $(4) $(MUSL)/lib/libharness.a
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "  LD $$@")
	$$(Q)$(MUSL_CC) -static -Wl,--build-id $(6:%=-Wl,-u,%) $$^ -L$(MUSL)/lib $(5) $(MUSL_LIBS) -o $$@.new && mv $$@.new $$@
MUSL_PROGRAMS += $(MUSL)/kernels/$(1)/$(2)
endef
MUSL_OWN_NAMES := __libc_version malloc_usable_size aligned_alloc
# $(1) kernel, $(2) its sources, $(3) its libraries
define musl_kernel
$(call musl_program,musl,$(1),$(2),,$(3),$(MUSL_OWN_NAMES))
$(foreach a,$(MUSL_LINKED),$(call musl_program,$(a),$(1),$(2),$(MUSL)/lib/$(a).o,$(3),)
)
endef
$(foreach k,$(KERNELS),$(eval $(call musl_kernel,$(k),kernels/$(k).c,)))
$(foreach k,$(MUSL_APPS),$(eval $(call musl_kernel,$(k),kernels/apps/$(k).c $(sort $(wildcard kernels/apps/$(k)/*.c)) $(SHARED_$(k)),$(LIBS_$(k)))))

.PHONY: musl-kernels
musl-kernels: $(MUSL_PROGRAMS)

-include $(shell find $(MUSL)/obj -name '*.d' 2>/dev/null)
