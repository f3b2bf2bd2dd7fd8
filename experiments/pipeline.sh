#!/bin/sh
# pipeline.sh AK PRESET RESULTS SWEEP...: run the sweeps, each into RESULTS/<sweep>, then fit, plot and build the paper.
# A sweep whose folder is there is resumed. PAPER names the folder of paper.tex (default: paper/).
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
for sweep in "$@"; do
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
"$root/analysis/paper.sh" "$results" ${PAPER:+"$PAPER"} || exit
[ $failed -eq 0 ] || die 1 "some rows failed; they are listed above and counted in the paper"
