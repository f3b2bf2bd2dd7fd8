# Flags of tlfl and of its variants; the Makefile includes this.

# In every build. The fast path needs initial-exec TLS and calls without a PLT; the compiler must
# not take the body of calloc for a call of calloc.
TLFL_CFLAGS := -fvisibility=hidden -ftls-model=initial-exec -fno-semantic-interposition \
               -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc -fno-builtin-realloc

# One library build/lib/libtlfl-<variant>.so each: one thing changed, all else the same sources.
TLFL_VARIANTS := clocked hardened locked locked-clocked packed remote unchecked
TLFL_FLAGS_clocked   := -DTLFL_CLOCKED
# Its layer calls the family below by name: bound in the library, not through a PLT.
TLFL_FLAGS_hardened  := -DTLFL_HARDENED -Wl,-Bsymbolic-functions
TLFL_FLAGS_locked    := -DTLFL_LOCKED
TLFL_FLAGS_locked-clocked := -DTLFL_LOCKED -DTLFL_CLOCKED
TLFL_FLAGS_packed    := -DTLFL_PACKED
TLFL_FLAGS_remote    := -DTLFL_REMOTE
TLFL_FLAGS_unchecked := -DTLFL_UNCHECKED
