#!/bin/sh
# run.sh [GROUP...]: run the tests and count them. Every test program prints TAP; this adds the lines up.
#
# Groups: e2e apps sim conformance sanitized R cross programs misuse unit tlfl model guest (all without arguments). Two of them run at
# a time, since no test measures time; LANES=1: one. What was skipped is listed with its reason, what failed with its file. The
# last line is `N passed, N failed, N skipped`; exit 1 if anything failed.
# The output of each test program is kept in $BUILD/test-logs/, and how long each took in test-logs/seconds.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
# shellcheck source=../experiments/common.sh
. "$root/experiments/common.sh"
cd "$root" || exit 3
export BUILD

# built FOLDER: of test programs, or the end
built() { [ -d "$build/tests/$1" ] || die 3 "$build/tests/$1 is not there: run make tests"; }

# The longest first: two take turns at them, see below.
groups="e2e apps sim conformance sanitized R cross programs misuse unit tlfl model guest"
# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $groups
for group; do
  case " $groups " in *" $group "*) ;; *) die 2 "no group '$group'; there are $groups" ;; esac
  case $group in unit | conformance | tlfl) built "$group" ;; esac
done
logs=$build/test-logs
mkdir -p "$logs"
limit=600 # seconds for one test program

# one NAME COMMAND...: run it, keep its output, add its TAP lines to the results.
one() {
  name=$1
  shift
  log=$logs/$(printf '%s' "$name" | tr '/ ' '__').log
  printf '%s\n' "$name"
  began=$(date +%s)
  timeout -k 10 "$limit" "$@" > "$log" 2>&1 < /dev/null &
  child=$!
  wait "$child"
  code=$?
  printf '%s %s\n' "$(($(date +%s) - began))" "$name" >> "$logs/seconds"
  awk -v name="$name" -v code="$code" '
    /^1\.\.[0-9]+/ { plan = substr($0, 4) + 0; planned = 1 }
    # cmocka writes a skipped test as "not ok N # SKIP name"
    /^(not )?ok.*# *SKIP/ { seen++; print "SKIP " name ": " $0; next }
    /^not ok/      { failed++; seen++; print "FAIL " name ": " $0; next }
    /^ok/          { seen++; print "PASS " name ": " $0 }
    END {
      if (code == 124 || code == 137) print "FAIL " name ": ran past its time limit"
      else if (code != 0 && failed == 0) print "FAIL " name ": ended with status " code
      else if (!planned || seen < plan) print "FAIL " name ": printed " seen + 0 " of " plan + 0 " results"
      else if (code == 0 && failed > 0) print "FAIL " name ": ended with status 0 in spite of failures"
    }' "$log" >> "$results"
}

unit() {
  for t in "$build"/tests/unit/*; do
    [ -x "$t" ] && [ -f "$t" ] && one "unit/${t##*/}" env CMOCKA_MESSAGE_OUTPUT=TAP "$t"
  done
}

# The same unit tests with AddressSanitizer and UndefinedBehaviorSanitizer, in a build folder of their own.
sanitized() {
  if ! make --no-print-directory -j2 BUILD="$BUILD/asan" SANITIZE=address,undefined unit-tests tlfl-tests counters \
      > "$logs/asan-build.log" 2>&1; then
    echo "FAIL sanitized: does not build, see $logs/asan-build.log" >> "$results"
    return
  fi
  for t in "$build"/asan/tests/unit/*; do
    [ -x "$t" ] && [ -f "$t" ] && one "asan/${t##*/}" env CMOCKA_MESSAGE_OUTPUT=TAP ASAN_OPTIONS=detect_leaks=0 "$t"
  done
  for t in "$build"/asan/tests/tlfl/*; do
    [ -x "$t" ] && [ -f "$t" ] && one "asan/tlfl/${t##*/}" env ASAN_OPTIONS=detect_leaks=0 "$t"
  done
}

# Each conformance test under the C library's malloc, as a check of the test itself, and under every build of tlfl, but
# for those that clock their lock (long.sh).
# (What only tlfl promises is skipped under glibc; those lines say nothing and are not counted.)
conformance() {
  for t in "$build"/tests/conformance/*; do
    { [ -x "$t" ] && [ -f "$t" ]; } || continue
    one "conformance/${t##*/} glibc" "$t"
    sed -i '/^SKIP.*a promise of tlfl$/d' "$results"
    for lib in "$build"/lib/libtlfl*.so; do
      case $lib in *clocked.so) continue ;; esac
      one "conformance/${t##*/} $(basename "$lib" .so)" env LD_PRELOAD="$(loadable "$lib")" "$t"
    done
  done
}

# Misuse programs: the driver's rules, then what each build of tlfl must catch (a column of expected.csv).
misuse() {
  one "misuse rules" tests/misuse/check.sh rules
  for name in tlfl tlfl-hardened; do
    [ ! -e "$build/lib/lib$name.so" ] || one "misuse $name" tests/misuse/check.sh "$name"
  done
}

# Real programs, preloaded. The long cases and the other variants are in long.sh, as are most of the next two.
programs() {
  for name in tlfl tlfl-hardened; do
    [ ! -e "$build/lib/lib$name.so" ] || one "programs $name" tests/programs/run.sh "$build/lib/lib$name.so"
  done
}

# The conformance tests in 32 bits and in a static program, where their compilers are installed: no emulator is needed.
cross() {
  one "other machines" tests/cross/run.sh i386 musl
}

# Memory by node in an emulated machine, where all that it needs is there already.
guest() {
  one "memory by node" tests/guest/run.sh "$build/lib/libtlfl.so"
}

# The simulated machine: misses that are known, the instruments of the cost model, a lock beside a queue, misses beside
# valgrind's, by allocator, and the same again. More launches in long.sh.
sim() {
  for t in known calls terms queue latency cachegrind sharing determinism; do
    one "sim/$t" sh "tests/sim/$t.sh"
  done
}

tlfl() {
  for t in "$build"/tests/tlfl/*; do
    [ -x "$t" ] && [ -f "$t" ] && one "tlfl/${t##*/}" "$t"
  done
}

# Every interleaving of what threads do to each other's heaps and to the lock, in small; larger in long.sh.
model() {
  one "models" tests/model/run.sh
}

R() {
  if lacks Rscript; then
    echo "SKIP R: $lacking" >> "$results"
    return
  fi
  one R Rscript tests/R/run.R
}

# Whole programs: the applications, traces, what compares one's own command. A group of its own, to share the lanes evenly.
app_tests="tests/e2e/apps_*.sh tests/e2e/compare.sh tests/e2e/traces.sh tests/e2e/musl.sh"
apps() {
  for t in $app_tests; do
    one "${t#tests/}" sh "$t"
  done
}

e2e() {
  # shellcheck disable=SC2086 # patterns, then words
  whole=" $(echo $app_tests) "
  for t in tests/e2e/*.sh; do
    case $whole in *" $t "*) ;; *) one "${t#tests/}" sh "$t" ;; esac
  done
}

count_check LANES "${LANES:=2}"

# lane NUMBER GROUP...: the groups that no other lane has taken yet.
lane() {
  results=$logs/results.$1 child=
  trap 'kill "$child"; exit 1' TERM # timeout hands it on
  : > "$results"
  shift
  for group; do
    ! mkdir "$logs/taken/$group" 2> /dev/null || "$group"
  done
  exit 0 # what failed is in the results
}

rm -rf "$logs/taken" "$logs"/results* "$logs/seconds"
mkdir "$logs/taken" || exit 3
lanes=
for number in $(seq "$LANES"); do
  lane "$number" "$@" &
  lanes="$lanes $!"
done
# shellcheck disable=SC2064,SC2086 # these lanes, words
trap "kill $lanes 2> /dev/null; wait; exit 1" INT TERM
lost=0
for lane in $lanes; do
  wait "$lane" || lost=$((lost + 1))
done
results=$logs/results
cat "$results".* > "$results"
# Nothing is passed that was not run to its end.
[ $lost -eq 0 ] || echo "FAIL run.sh: $lost of $LANES lanes ended before their last group" >> "$results"
for group; do
  [ -d "$logs/taken/$group" ] || echo "FAIL $group: not begun" >> "$results"
done

grep '^SKIP' "$results"
grep '^FAIL' "$results"
awk '/^PASS/ { p++ } /^FAIL/ { f++ } /^SKIP/ { s++ }
  END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$results"
