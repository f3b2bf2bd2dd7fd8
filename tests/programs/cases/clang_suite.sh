#!/bin/sh
# builds a part of this suite: the harness, the kernels, tlfl
# needs: clang make
# size: long
# limit: 600
cp -R "$TREE" tree && cd tree || exit
make --no-print-directory -j2 CC=clang BUILD=out all >../log 2>&1 || { tail -n 20 ../log >&2; exit 1; }
find out -name '*.o' | sort | xargs cksum
