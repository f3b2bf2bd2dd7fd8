#!/bin/sh
# pipeline.sh AK PRESET RESULTS SWEEP...: run the sweeps, each into RESULTS/<sweep>, then fit, plot and build the paper.
# A sweep whose folder is there is resumed; one that only the simulated machine counts is left out where that cannot run.
# RESULTS/disasm holds the machine code that the paper prints. PAPER names the folder of paper.tex (default: paper/).
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
failed=0

mkdir -p "$results" || exit 3
no_sim=$("$ak" list counters | sed -n 's/^  sim .*\[cannot be used: \(.*\)\]$/\1/p')
for sweep in "$@"; do
  if [ -n "$no_sim" ] && grep -q '^counters *= *sim' "$root/experiments/$sweep.sweep"; then
    echo "$sweep is left out: $no_sim" >&2
    continue
  fi
  resume=
  [ -d "$results/$sweep" ] && resume=--resume
  "$ak" run "$sweep" --preset "$preset" --out "$results/$sweep" $resume
  code=$?
  case $code in
    0) ;;
    1) failed=1 ;;
    *) exit $code ;;
  esac
done
for call in mimalloc-malloc mimalloc-free tlfl-malloc tlfl-free; do
  [ -d "$results/fastpath-anatomy" ] || break
  file=$results/disasm/$call.json
  mkdir -p "$results/disasm"
  [ -s "$file" ] || "$ak" disasm "${call%-*}" --op "${call#*-}" --json > "$file" || rm -f "$file"
done
"$root/analysis/paper.sh" "$results" ${PAPER:+"$PAPER"} || exit
[ $failed -eq 0 ] || die 1 "some rows failed; they are listed above and counted in the paper"
