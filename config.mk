# config.mk: the one place to override. Every variable may also be given on the command line
# (make CC=clang PREFIX=/opt/ak) or in an untracked config.local.mk.
-include config.local.mk

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=

ifeq ($(origin CC),default)
CC := gcc
endif
OPT     ?= -O2 -g
WARN    ?= -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wshadow
# SANITIZE=address,undefined (or thread) builds everything with that sanitizer.
SANITIZE ?=

# The sweep that `make sweep` runs.
SWEEP      ?= contention
THREADS    ?= 1 2 4 8 16 32 64
ALLOCATORS ?= glibc jemalloc mimalloc tcmalloc tlfl
OUT        ?= results/sweep

# The preset of `make reproduce` (quick or paper).
PRESET ?= quick
RESULTS ?= results/reproduce

# The form of `make bench-tlfl` (short or full).
BENCH ?= short
