# cross.mk: tlfl and the conformance tests for another machine or C library, into $(BUILD)/cross/$(TARGET).
# usage: make -f tests/cross/cross.mk TARGET=aarch64|armhf|i386|musl [BUILD=build]
# The sources, their flags and the list of tests are the tree's own.
include config.mk
include allocators/tlfl/variants.mk

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

TRIPLET_aarch64 := aarch64-linux-gnu
TRIPLET_armhf   := arm-linux-gnueabihf
TRIPLET_i386    := i686-linux-gnu
TRIPLET := $(TRIPLET_$(TARGET))
CROSS   := $(if $(TRIPLET),$(TRIPLET)-gcc,$(if $(filter musl,$(TARGET)),musl-gcc,$(error TARGET = '$(TARGET)': expected aarch64, armhf, i386 or musl)))
D       := $(BUILD)/cross/$(TARGET)

# The plain library, and of the variants the one that changes most.
VARIANTS := $(filter hardened,$(TLFL_VARIANTS))
TLFL_SRC := $(sort $(wildcard allocators/tlfl/*.c))
HEADERS  := $(wildcard allocators/tlfl/*.h tests/conformance/*.h tests/cross/*.h)
EXEMPT   := $(shell awk -v t=$(TARGET) '$$1 ~ "(^|,)" t "(,|$$)" && $$3 == "." { print $$2 }' tests/cross/exempt.txt)
TESTS    := $(filter-out $(EXEMPT),$(basename $(notdir $(sort $(wildcard tests/conformance/*.c)))))
FLAGS    := -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE
NO_BUILTIN := -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc -fno-builtin-realloc

ifeq ($(TARGET),musl)

# Static: tlfl's objects are part of each test. musl's include path lacks the kernel's headers:
# links to these alone, since the rest of /usr/include is glibc's.
KERNEL := $(D)/kernel-headers
MUSL   := $(CROSS) -static -isystem $(KERNEL)
OBJECTS = $(patsubst allocators/tlfl/%.c,$(D)/obj$(1)/%.o,$(TLFL_SRC))

all: $(TESTS:%=$(D)/%) $(foreach v,$(VARIANTS),$(TESTS:%=$(D)/%-$(v)))

$(KERNEL):
	@mkdir -p $@.new
	@ln -s /usr/include/linux $@.new/linux
	@ln -s /usr/include/asm-generic $@.new/asm-generic
	@ln -s /usr/include/$$(gcc -print-multiarch)/asm $@.new/asm
	@mv $@.new $@

# One set of rules a build: $(1) is nothing or -VARIANT, $(2) its flags.
define musl_rules
$(D)/obj$(1)/%.o: allocators/tlfl/%.c $(HEADERS) | $(KERNEL)
	@mkdir -p $$(@D)
	@echo "  CC $$@"
	@$(MUSL) $(FLAGS) $(TLFL_CFLAGS) $(2) -c $$< -o $$@
$(D)/%$(1): tests/conformance/%.c tests/cross/static_dl.c $(call OBJECTS,$(1)) $(HEADERS)
	@echo "  LD $$@"
	@$(MUSL) $(FLAGS) $(NO_BUILTIN) -include tests/cross/musl_names.h $$< tests/cross/static_dl.c $(call OBJECTS,$(1)) -o $$@
endef
$(foreach v,$(VARIANTS),$(eval $(call musl_rules,-$(v),$(TLFL_FLAGS_$(v)))))
$(eval $(call musl_rules,,))

else

# The loader by its full path where it can run here, so that a test may exec itself; under the emulator -L finds it.
LOADER_i386 := -Wl,--dynamic-linker=/usr/$(TRIPLET)/lib/ld-linux.so.2 -Wl,-rpath,/usr/$(TRIPLET)/lib

PLUGINS := $(patsubst tests/conformance/%.c,$(D)/%.so,$(wildcard tests/conformance/plugins/*.c))

all: $(D)/libtlfl.so $(VARIANTS:%=$(D)/libtlfl-%.so) $(TESTS:%=$(D)/%) $(PLUGINS)

$(D)/libtlfl.so $(VARIANTS:%=$(D)/libtlfl-%.so): $(TLFL_SRC) $(HEADERS)
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CROSS) $(FLAGS) $(TLFL_CFLAGS) $(TLFL_FLAGS_$(patsubst $(D)/libtlfl-%.so,%,$@)) -fPIC -shared -Wl,-z,nodelete,-z,initfirst $(TLFL_SRC) -lpthread -Wl,-soname,$(@F) -o $@

$(D)/plugins/%.so: tests/conformance/plugins/%.c
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CROSS) $(FLAGS) $(NO_BUILTIN) -fPIC -shared $< -o $@

$(D)/%: tests/conformance/%.c $(HEADERS)
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CROSS) $(FLAGS) $(NO_BUILTIN) $(LOADER_$(TARGET)) $< -lpthread -ldl -o $@

endif
