#!/bin/sh
# The sweeps that come with the suite: every preset plans, smoke runs and verifies. Prints TAP.
set -u
# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
ak=$build/bin/ak

# plan SWEEP PRESET REPS: it plans, with at least so many repetitions
plan() {
  "$ak" run "$1" --preset "$2" --allocators glibc --dry-run > "$dir/plan" || return 1
  tail -n 1 "$dir/plan"
  [ "$(sed -n '$s/.* \([0-9]*\) repetitions:.*/\1/p' "$dir/plan")" -ge "$3" ]
}

# smoke SWEEP ALLOCATORS: all rows ok or skipped, and the folder verifies.
smoke() {
  "$ak" run "$1" --preset smoke --out "$dir/$1" --allocators "$2" && "$ak" verify "$dir/$1"
}

cd "$dir" || exit 1
skip_without "the sweeps of the suite" jq "$ak"
installed=$("$ak" list allocators --json | jq -r 'map(select(.found and .frees and (.linked | not)) | .name) | join(",")')
linked=$("$ak" list allocators --json | jq -r 'map(select(.found and .linked) | .name) | join(",")')
sweeps=$("$ak" list sweeps --json | jq -r '.[].name')
check "the six sweeps of the paper are there" sh -c '
  for s in paper contention fastpath falseshare remote latency; do case " $1 " in *" $s "*) ;; *) exit 1 ;; esac; done' \
  sh "$(echo "$sweeps" | tr '\n' ' ')"
no_sim=$("$ak" list counters --json | jq -r '.[] | select(.name == "sim" and (.can | not)) | .trouble')
for sweep in $sweeps; do
  quick=6 paper=20 trouble='' whom=$installed
  # Counts of the simulated machine have no noise, and a launch takes its time: two allocators will do.
  if grep -q '^counters *= *sim' "$root/experiments/$sweep.sweep"; then
    quick=2 paper=2 trouble=$no_sim whom=glibc,tlfl
  fi
  # A launch of an application takes seconds.
  kernel=$(sed -n 's/^kernel *= *//p' "$root/experiments/$sweep.sweep")
  if [ -f "$root/kernels/apps/$kernel.c" ]; then
    whom=glibc,tlfl
    [ ! -f "$build/kernels/$kernel.lacks" ] || trouble="$kernel is not built: it takes $(cat "$build/kernels/$kernel.lacks")"
  fi
  case $sweep in
    replay*) [ -s "$build/traces/gcc.trace" ] || "$root/experiments/traces.sh" gcc > "$dir/said" 2>&1 || cat "$dir/said" ;;
    *-musl)
      whom=$linked
      [ -n "$linked" ] || trouble="no static programs of musl: make musl builds them"
      ;;
  esac
  if [ -n "$trouble" ]; then
    skip "$sweep" "$trouble"
    continue
  fi
  check "$sweep, smoke: plans" plan "$sweep" smoke 1
  check "$sweep, quick: plans, $quick launches of each cell at least" plan "$sweep" quick $quick
  check "$sweep, paper: plans, $paper launches of each cell at least" plan "$sweep" paper $paper
  check "$sweep, smoke: runs and verifies" smoke "$sweep" "$whom"
  check "$sweep says what it asks" sh -c '"$1" list sweeps | grep -q "^  $2 *[a-zA-Z]"' sh "$ak" "$sweep"
done
check "one seed for all allocators of a cell and repetition, another for the next" sh -c '
  awk -F, "NR > 1 { key = \$3 \",\" \$4 \",\" \$6 \",\" \$11; if (key in seed && seed[key] != \$8) bad = 1; seed[key] = \$8 } END { exit bad }" \
    "$1/contention/plan.csv"' sh "$dir"
finish
