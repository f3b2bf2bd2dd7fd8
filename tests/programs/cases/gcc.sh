#!/bin/sh
# compiles a file of this project
# needs: gcc
# size: short
gcc -std=gnu11 -O2 -D_GNU_SOURCE -I"$TREE/allocators/tlfl" -S -o - "$TREE/allocators/tlfl/api.c"
