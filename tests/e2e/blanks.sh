#!/bin/sh
# The suite in a folder whose path has blanks, which LD_PRELOAD cannot hold, make only as a relative path, and R passes to
# a script in another form. A copy of the tree with what is built. Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name are not unreachable
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
skip_without "the suite in a folder with blanks" jq Rscript valgrind "$build/bin/ak" "$build/tests/misuse/rules"

copy="$dir/with a blank/suite"
mkdir -p "$copy/build/tests" || exit 3
for part in Makefile config.mk .lintr allocators kernels experiments analysis paper docs tests; do
  cp -R "$root/$part" "$copy/" || exit 3
done
for part in bin kernels counters lib tests/misuse; do
  cp -R "$build/$part" "$copy/build/$part" || exit 3
done
bench=$copy/experiments/bench
export BUILD=build BENCH_OUT="$dir/rows of it" RELEASE=glibc PEERS=""

tap_passes() { # tap_passes COMMAND...: ends with 0, with no line that is not ok, and with some
  "$@" > "$dir/lines" 2>&1 || { grep -v '^ok' "$dir/lines"; return 1; }
  grep -q '^ok' "$dir/lines" && ! grep '^not ok' "$dir/lines"
}
# measured FILE: rows, and none with a reason
measured() {
  awk -F , '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i == "reason") at = i; next }
    at && $at != "" { print; bad = 1 }
    END { exit bad || NR < 2 }' "$BENCH_OUT/$1"
}

check "make help" make -s -C "$copy" help
check "ak finds what it needs" "$copy/build/bin/ak" doctor
check "a sweep runs under an allocator of the folder" "$copy/build/bin/ak" run contention --preset smoke --threads 1 \
  --allocators glibc,tlfl --out "$dir/a run"
check "its rows verify" "$copy/build/bin/ak" verify "$dir/a run"
check "the rules of the misuse programs" tap_passes "$copy/tests/misuse/check.sh" rules
check "what tlfl stops" tap_passes "$copy/tests/misuse/check.sh" tlfl
check "the table of it" env RUNS=1 "$copy/tests/misuse/calibrate.sh" tlfl "own=$copy/build/lib/libtlfl-hardened.so"
check "a program under tlfl" tap_passes "$copy/tests/programs/run.sh" "$copy/build/lib/libtlfl.so" awk
check "a trivial program is measured" env LAUNCHES=2 "$bench/trivial.sh" glibc tlfl
check "with rows" measured trivial.csv
check "scaling is measured" env ROUNDS=1 OPS=2000 "$bench/scaling.sh" glibc tlfl
check "with rows, none with a reason" measured scaling.csv
check "instructions are counted" env OPS=256 "$bench/instructions.sh" --cells tlfl
has strace && check "with rows, none with a reason" measured instructions.csv
check "the table of the benchmark" "$bench/run.sh" report
check "a fit" Rscript "$copy/analysis/fit.R" "$dir/a run" "$dir/a fit"
check "tests of the analysis" tap_passes Rscript "$copy/tests/R/run.R" stats
finish
