#!/bin/sh
# The benchmark of one allocator, in its smallest form: every part measures, none of them gives a verdict; by counts, which
# are exact, a planted slow allocator misses its targets where the floor meets them; what cannot be counted says why.
# shellcheck disable=SC2317 # functions that check calls by name are not unreachable
. "$(dirname "$0")/fixtures/tap.sh"
bench=$root/experiments/bench
skip_without "the benchmark" jq Rscript
export BENCH_OUT="$dir/out"

# glibc's malloc after a loop that does nothing: slow, and correct.
cat > "$dir/slow.c" << 'C'
#include <stddef.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void __libc_free(void *);
static void idle(void) { for (volatile int i = 0; i < 300; i++) ; }
void *malloc(size_t n) { idle(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { idle(); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { idle(); return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { return __libc_memalign(a, n); }
void free(void *p) { idle(); __libc_free(p); }
C
"${CC:-gcc}" -O1 -fno-builtin -fPIC -shared "$dir/slow.c" -o "$dir/libslow.so" || exit 3

slow() { SUBJECT=slow=$dir/libslow.so RELEASE=glibc PEERS="" "$bench/run.sh" --tiny "$@" > "$dir/said" 2>&1; }
# begins ID VERDICT: what figures.csv says of a figure
begins() { grep "^$1," "$BENCH_OUT/figures.csv" | grep "^$1,\"\{0,1\}$2"; }

# above ID LIMIT: the value of a figure
above() { awk -F , -v id="$1" -v limit="$2" '$1 == id { found = $3 + 0 > limit } END { exit !found }' "$BENCH_OUT/figures.csv"; }

check "the kernels, the tail, a trivial program, false sharing and scaling are measured" slow cpu latency trivial sharing scaling
check "a slow allocator is slower in the mean over kernels" above cpu 0.85
check "and in that of a kernel" above cpu.fastpath 1.1
check "a tiny run gives no verdict" begins cpu "tiny: shows only that it works"
is "on none of its figures" "$(grep -c '^[^,]*,"\{0,1\}\(met\|missed\|open\)' "$BENCH_OUT/figures.csv")" 0
check "the memory target where its rival has no rows has a reason" begins rss.jemalloc "not measured: jemalloc has no rows"
check "memory beside glibc has a value" begins rss.glibc tiny
check "false sharing has a value" begins sharing.false_active.8 tiny
check "a trivial program has a value" begins trivial.rss_kib tiny
check "scaling has a value" begins scaling tiny
check "the tail at one thread has a value" begins latency.1 tiny
is "two launches give no interval" "$(awk -F , '$1 == "cpu" { print $4 "|" $5 "|" $6 }' "$BENCH_OUT/figures.csv")" "||2"
check "a part that was not run is not measured, with the reason" begins instructions "not measured: instructions.csv is not there"

if ! lacks valgrind strace; then
  check "instructions are counted" env OPS=512 BUILD="$BUILD" "$bench/instructions.sh" --cells "slow=$dir/libslow.so" tlfl bump
  SUBJECT=slow=$dir/libslow.so "$bench/run.sh" report > "$dir/said" 2>&1
  check "a slow allocator misses its counts" begins instructions.tlfl.small.pair missed
  SUBJECT=bump "$bench/run.sh" report > "$dir/said" 2>&1
  check "the floor meets them" begins instructions.tlfl.large.fifo met
  is "the floor's count is the same for all sizes" "$(awk -F , '$1 == "bump" && $3 == "pair" { print $8 - $7 }' "$BENCH_OUT/instructions.csv" | sort -u | wc -l)" 1
  is "each row of a library says which" "$(awk -F , '$1 == "slow" { print $2 }' "$BENCH_OUT/instructions.csv" | sort -u)" "$dir/libslow.so"
else
  skip "instructions" "$lacking"
fi

# A PATH with all but the watchers.
mkdir "$dir/bin"
for tool in /usr/bin/* /bin/*; do
  case ${tool##*/} in valgrind* | strace*) ;; *) ln -sf "$tool" "$dir/bin/" ;; esac
done
check "without valgrind and strace page faults are still counted" \
  env PATH="$dir/bin" OPS=512 BUILD="$BUILD" "$bench/instructions.sh" --cells glibc
is "what is not counted is empty" "$(awk -F , 'NR > 1 && ($7 != "" || $9 != "" || $10 == "")' "$BENCH_OUT/instructions.csv")" ""
is "and has a reason" "$(awk -F , 'NR == 2 { print $11 }' "$BENCH_OUT/instructions.csv")" "no valgrind: make deps installs it; no strace: make deps installs it"
SUBJECT=glibc "$bench/run.sh" report > "$dir/said" 2>&1
check "which is the verdict" begins instructions.tlfl.small.pair "not measured: no valgrind"

printf 'before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n' > "$dir/page.md"
SUBJECT=glibc "$bench/run.sh" --doc "$dir/page.md" report > "$dir/said" 2>&1
is "the table goes between the marks" "$(sed -n '1p;$p' "$dir/page.md" | tr '\n' ' ')$(grep -c '^old' "$dir/page.md")" "before after 0"
check "and names the commit of each part" grep -q '^- cpu: commit ' "$dir/page.md"
check "no path of this machine is in it" sh -c "! grep -F '$root' '$dir/page.md'"
echo none > "$dir/bare.md"
is "a page without marks is refused" "$("$bench/splice.sh" "$dir/bare.md" "$dir/page.md" 2> /dev/null; echo $?)$(cat "$dir/bare.md")" 2none

before=$(cat "$BENCH_OUT"/*.csv | cksum)
is "an unknown part is refused" "$("$bench/run.sh" cpu speed 2> /dev/null; echo $?)" 2
is "an unknown subject is refused" "$(SUBJECT=nothing "$bench/run.sh" cpu 2> /dev/null; echo $?)" 2
is "a subject that is not there is refused" "$(SUBJECT=x=$dir/none.so "$bench/run.sh" cpu 2> /dev/null; echo $?)" 3
is "a page that is not there is refused" "$("$bench/run.sh" --doc "$dir/none.md" cpu 2> /dev/null; echo $?)" 2
is "before any earlier rows are moved" "$(cat "$BENCH_OUT"/*.csv | cksum; ls -d "$BENCH_OUT/cpu")" "$before
$BENCH_OUT/cpu"
for script in run instructions trivial scaling splice; do
  is "$script.sh --help says how it is used" "$("$bench/$script.sh" --help | head -n 1 | cut -c "1-$((${#script} + 3))"; "$bench/$script.sh" -h > /dev/null; echo $?)" "$script.sh
0"
done
is "make knows two forms" "$(make -s -C "$root" bench-tlfl BENCH=quick 2>&1 | grep -c "BENCH='quick': expected short or full")" 1
finish
