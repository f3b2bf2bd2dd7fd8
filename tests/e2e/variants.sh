#!/bin/sh
# The variants that plant a cost between threads cost a single thread what tlfl does: instructions of a pair of malloc and
# free (callgrind, experiments/bench/loops.c) within 2 %. What the lock of tlfl-locked adds is printed. Prints TAP.
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
cd "$root" || exit 3

WITHIN=2 # per cent
OPS=20480
CELLS="pair:16:1 pair:64:300 pair:512:1 pair:4096:300 pair:32768:1 lifo:16:1 lifo:64:300 lifo:512:1 fifo:64:1 fifo:4096:300"

skip_without "instructions of the variants" valgrind
if [ ! -e /usr/include/valgrind/callgrind.h ]; then
  skip "instructions of the variants" "no header valgrind/callgrind.h"
  finish
fi
make --no-print-directory BUILD="$BUILD" "$BUILD/bench/loops" "$BUILD/lib/libtlfl.so" "$BUILD/lib/libtlfl-packed.so" \
  "$BUILD/lib/libtlfl-remote.so" "$BUILD/lib/libtlfl-locked.so" > "$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }

# count NAME: lines `CELL INSTRUCTIONS-A-PAIR` into $dir/NAME: a loop twice as long less the loop
count() {
  mkdir "$dir/counts"
  # shellcheck disable=SC2086 # a list
  LD_PRELOAD="$build/lib/lib$1.so" valgrind --tool=callgrind --combine-dumps=yes \
    --callgrind-out-file="$dir/counts/%p" "$build/bench/loops" $OPS $CELLS > "$dir/said" 2>&1
  cat "$dir"/counts/* | awk -v ops=$OPS '
    /^desc: Trigger: Client Request: mark/ { cell = $6; mark = $7 }
    /^totals:/ && cell != "" { total[cell, mark] = $2; seen[cell]; cell = "" }
    END { for (c in seen) if ((c, 2) in total) printf "%s %.2f\n", c, (total[c, 2] - total[c, 1]) / ops }' |
    sort > "$dir/$1"
  rm -r "$dir/counts"
}

all_counted() { [ "$(wc -l < "$dir/$1")" -eq "$(echo "$CELLS" | wc -w)" ]; }

# near NAME: every cell within the bound
near() {
  join "$dir/tlfl" "$dir/$1" | tee "$dir/said" |
    awk -v within=$WITHIN '{ d = ($3 / $2 - 1) * 100; if (d > within || d < -within) bad = 1 } END { exit bad || NR == 0 }'
}

for name in tlfl tlfl-packed tlfl-remote tlfl-locked; do
  count $name
  check "$name: all loops are counted" all_counted $name
done
check "tlfl-packed costs a single thread what tlfl does" near tlfl-packed
check "tlfl-remote costs a single thread what tlfl does" near tlfl-remote
is "the same bound tells tlfl-locked from tlfl" "$(near tlfl-locked && echo near)" ""
echo "# instructions a pair:  tlfl, packed, remote, locked"
join "$dir/tlfl" "$dir/tlfl-packed" | join - "$dir/tlfl-remote" | join - "$dir/tlfl-locked" | sed 's/^/#   /'
finish
