#!/bin/sh
# compresses with threads and expands
# needs: zstd
# size: short
level=3
[ -z "$FULL" ] || level=15
for threads in 1 4; do
  zstd -q -f -$level -T$threads "$LINES_FILE" -o packed.zst && zstd -q -dc packed.zst | cmp - "$LINES_FILE" || exit
  cksum <packed.zst
done
