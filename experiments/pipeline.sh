#!/bin/sh
# pipeline.sh AK PRESET RESULTS SWEEP...: run the sweeps, each into RESULTS/<sweep>, then fit, plot and build the paper.
# A sweep whose folder is there is resumed; one that only the simulated machine counts is left out where that cannot run.
# Sweeps that measure run one after another; then those of the simulated machine two at a time, since load changes no count.
# A sweep of an application whose parts are missing (status 3) is left out with its reason.
# RESULTS/disasm holds the machine code that the paper prints; RESULTS/compare, where a sweep of ndjson is asked for, what `ak
# compare` says of a real program, the compiler. PAPER names the folder of paper.tex (default: paper/).
# Exit 1 where a row failed (the paper is built all the same and counts it); 2 and 3 end the pipeline at once.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
# shellcheck source=common.sh
. "$root/experiments/common.sh"
[ $# -ge 4 ] || die 2 "want AK PRESET RESULTS SWEEP..."
# What comes last is asked for first: the sweeps take long.
need "$1" Rscript gnuplot latexmk
[ -d "${PAPER:-$root/paper}" ] || die 2 "PAPER='${PAPER:-}': no such folder"
ak=$1 preset=$2 results=$3
shift 3
failed=0 # 1: a row did
lanes=   # processes that run simulated sweeps

mkdir -p "$results" || exit 3
case " $* " in *" ndjson "*) compares=yes ;; *) compares= ;; esac
no_sim=$("$ak" list counters | sed -n 's/^  sim .*\[cannot be used: \(.*\)\]$/\1/p')

# run SWEEP: becomes ak.
run() {
  resume=
  [ -d "$results/$1" ] && resume=--resume
  exec "$ak" run "$1" --preset "$preset" --out "$results/$1" $resume
}

# shellcheck disable=SC2086 # words
stop_lanes() { [ -z "$lanes" ] || { kill $lanes 2> /dev/null; wait; }; }

# is_app SWEEP: its kernels are applications
is_app() {
  kernels=$(sed -n 's/^kernel *= *//p' "$root/experiments/$1.sweep" | tr ',' ' ')
  for kernel in $kernels; do
    [ -f "$root/kernels/apps/$kernel.c" ] || return 1
  done
  [ -n "$kernels" ]
}

# admit STATUS [SWEEP]: that of a sweep
admit() {
  case $1 in
    0) ;;
    1) failed=1 ;;
    3) # an application's sweep said why
      [ $# -eq 2 ] && is_app "$2" && echo "$2 is left out" >&2 && return
      stop_lanes
      exit 3
      ;;
    *)
      stop_lanes
      exit "$1"
      ;;
  esac
}

# lane SWEEP...: those that the other lane has not begun, what each says at its end. Ends with the worst status.
lane() {
  worst=0 child=
  trap 'kill "$child"; wait "$child"; exit 3' TERM
  for sweep; do
    mkdir "$dir/$sweep" 2> /dev/null || continue
    echo "$sweep, in the simulated machine" >&2
    run "$sweep" > "$dir/$sweep/said" 2>&1 &
    child=$!
    wait "$child"
    code=$?
    cat "$dir/$sweep/said" >&2
    [ $code -le $worst ] || worst=$code
    [ $code -le 1 ] || break
  done
  exit $worst
}

simulated=
for sweep; do
  if ! grep -q '^counters *= *sim' "$root/experiments/$sweep.sweep"; then
    (run "$sweep")
    admit $? "$sweep"
  elif [ -n "$no_sim" ]; then
    echo "$sweep is left out: $no_sim" >&2
  else
    simulated="$simulated $sweep"
  fi
done
# One real program, as a user would ask about their own.
if [ -n "$compares" ] && [ ! -s "$results/compare/gcc.csv" ]; then
  launches=6
  [ "$preset" != smoke ] || launches=1
  mkdir -p "$results/compare" || exit 3
  "$ak" compare --runs $launches --csv "$results/compare/gcc.csv" -- \
    gcc -O1 -std=gnu11 -D_GNU_SOURCE -I"$root/kernels" -c "$root/kernels/churn.c" -o /dev/null
  admit $?
fi

trap 'stop_lanes; exit 1' INT TERM
for lane in 1 2; do
  # shellcheck disable=SC2086 # words
  lane $simulated &
  lanes="$lanes $!"
done
for lane in $lanes; do
  wait "$lane"
  admit $?
done

for call in mimalloc-malloc mimalloc-free tlfl-malloc tlfl-free; do
  [ -d "$results/fastpath-anatomy" ] || break
  file=$results/disasm/$call.json
  mkdir -p "$results/disasm"
  [ -s "$file" ] || "$ak" disasm "${call%-*}" --op "${call#*-}" --json > "$file" || rm -f "$file"
done
"$root/analysis/paper.sh" "$results" ${PAPER:+"$PAPER"} || exit
[ $failed -eq 0 ] || die 1 "some rows failed; they are listed above and counted in the paper"
