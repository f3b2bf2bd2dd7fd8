#!/bin/sh
# paper.sh RESULTS [PAPER]: fit, draw, write tables and numbers, and build PAPER/paper.pdf (default: paper/ of the suite).
# RESULTS holds one folder a sweep. Parts that were not measured say so; they do not fail the build.
# Each folder is checked by `ak verify` first, and one with violations is refused (exit 2). AK names the command
# (default: build/bin/ak of the suite, else ak in PATH); AK=none skips the check.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=../experiments/common.sh
. "$root/experiments/common.sh"
here=$root/analysis
if [ $# -lt 1 ] || [ $# -gt 2 ]; then die 2 "want RESULTS [PAPER]"; fi
results=$1
[ -d "$results" ] ||
  die 2 "$results: no such folder; 'make reproduce' measures one, 'make paper RESULTS=DIR' names another"
need Rscript gnuplot latexmk

ak=${AK:-}
if [ -z "$ak" ]; then
  ak=$build/bin/ak
  [ -x "$ak" ] || ak=ak
elif [ "$ak" != none ] && ! has "$ak"; then
  die 3 "AK='$ak': no such command"
fi
if [ "$ak" != none ] && ! command -v "$ak" >/dev/null 2>&1; then
  echo "warning: $results: not verified, no ak is there (make builds it, AK=COMMAND names it)" >&2
  ak=none
fi
for folder in "$results" "$results"/*; do
  if [ "$ak" = none ] || [ ! -f "$folder/runs.csv" ]; then continue; fi
  if ! said=$("$ak" verify "$folder" 2>&1); then
    die 2 "$folder: ak verify rejects it: $(printf '%s\n' "$said" | tail -n 1)"
  fi
done
[ -f "${2:-$root/paper}/paper.tex" ] || die 2 "${2:-$root/paper}: no paper.tex there"
paper=$(cd "${2:-$root/paper}" && pwd)
out=$paper/generated

# Dates in PDFs are that of the last launch, so that the same results give the same bytes anywhere.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  last=$(sed -n 's/^ *"\(at\|finished_at\)": *"\([^"]*\)".*/\2/p' "$results"/meta.json "$results"/*/meta.json 2>/dev/null |
    LC_ALL=C sort | tail -n 1)
  SOURCE_DATE_EPOCH=$(date -u -d "${last:-2000-01-01T00:00:00Z}" +%s 2>/dev/null) || SOURCE_DATE_EPOCH=946684800
fi
export SOURCE_DATE_EPOCH FORCE_SOURCE_DATE=1 LC_ALL=C.UTF-8 TZ=UTC

for part in fit claims figures tables numbers; do
  Rscript "$here/$part.R" "$results" "$out" > "$dir/said"
done
# cairo dates what it draws and asks no SOURCE_DATE_EPOCH: as many bytes of another date.
stamp=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%SZ 2>/dev/null) || stamp=20000101000000Z
for pdf in "$out"/*.pdf; do
  [ ! -f "$pdf" ] || LC_ALL=C sed -i "s|^\( */CreationDate (D:\)[0-9]\{14\}Z)|\1$stamp)|" "$pdf"
done
cd "$paper"
if ! latexmk -pdf -interaction=nonstopmode -halt-on-error -silent paper.tex > generated/latexmk.log 2>&1; then
  grep -A 4 '^!' paper.log >&2 || tail -n 20 generated/latexmk.log >&2
  echo "$paper/paper.tex: LaTeX failed; the whole log is $paper/paper.log" >&2
  exit 1
fi
if grep -E 'undefined|multiply.defined' paper.log >&2; then
  echo "$paper/paper.tex: undefined or doubled references, see above" >&2
  exit 1
fi
echo "$paper/paper.pdf"
