#!/bin/sh
# compresses with threads and expands
# needs: xz
# size: short
level=1
[ -z "$FULL" ] || level=6
for threads in 1 4; do
  xz -$level -T$threads --block-size=1MiB -c "$LINES_FILE" >packed.xz && xz -T$threads -dc packed.xz | cmp - "$LINES_FILE" || exit
  cksum <packed.xz
done
