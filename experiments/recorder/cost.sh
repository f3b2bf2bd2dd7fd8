#!/bin/sh
# cost.sh [ROUNDS]: what recording costs a program, as CPU time with the recorder over CPU time without: the table of
# docs/traces.md. Interleaved, medians of ROUNDS (default 7) runs each; without what `ak record` does after the program's end.
#
#   loop     malloc and free of random sizes and nothing else (tests/e2e/fixtures/traced.c): the worst case
#   python3  strings made, sorted and joined, with PYTHONMALLOC=malloc, so that each object is a call
#   gcc      gcc -O1 over a file of this project
set -u

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 3
# shellcheck source=../common.sh
. "$root/experiments/common.sh"
rounds=${1:-7}
count_check ROUNDS "$rounds"
library=$(loadable "$build/lib/libak-record.so")
need "$library" gcc

# cpu COMMAND...: user and system seconds of it and its children
cpu() {
  sh -c '"$@" > /dev/null 2>&1; times' sh "$@" | awk 'NR == 2 {
    for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] }
    print sum }'
}
median() { sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"; }

# cost NAME COMMAND...
cost() {
  name=$1
  shift
  : > "$dir/without"
  : > "$dir/with"
  for _ in $(seq "$rounds"); do
    cpu "$@" >> "$dir/without"
    rm -rf "$dir/spool"
    mkdir "$dir/spool" && head -c 4096 /dev/zero > "$dir/spool/control"
    cpu env AK_RECORD="$dir/spool" LD_PRELOAD="$library" "$@" >> "$dir/with"
  done
  echo "$name $(median "$dir/without") $(median "$dir/with")" |
    awk '{ printf "%-8s %6.2f s without, %6.2f s with: %.2f times\n", $1, $2, $3, $3 / $2 }'
}

gcc -O1 -std=gnu11 -D_GNU_SOURCE -fno-builtin "$root/tests/e2e/fixtures/traced.c" -o "$dir/traced" -lpthread || exit 3
cost loop "$dir/traced" busy
[ ! -x /usr/bin/python3 ] || cost python3 env PYTHONMALLOC=malloc /usr/bin/python3 -S -s -c '
words = [str(i) * 3 for i in range(600000)]
print(len("".join(sorted(words))))'
cost gcc gcc -O1 -std=gnu11 -D_GNU_SOURCE -I"$root/experiments/trace" -c "$root/experiments/trace/trace.c" -o "$dir/trace.o"
