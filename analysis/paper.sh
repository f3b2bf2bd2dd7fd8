#!/bin/sh
# paper.sh RESULTS [PAPER]: fit, draw, write tables and numbers, and build PAPER/paper.pdf (default: paper/ of the suite).
# RESULTS holds one folder a sweep. Parts that were not measured say so; they do not fail the build.
# Each folder is checked by `ak verify` first, and one with violations is refused (exit 2). AK names the command
# (default: build/bin/ak of the suite, else ak in PATH); AK=none skips the check.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: analysis/paper.sh RESULTS [PAPER]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
results=$1
if [ ! -d "$results" ]; then
  echo "$results: no such folder; 'make reproduce' measures one, 'make paper RESULTS=DIR' names another" >&2
  exit 2
fi

ak=${AK:-}
if [ -z "$ak" ]; then
  ak=$here/../build/bin/ak
  [ -x "$ak" ] || ak=ak
fi
if [ "$ak" != none ] && ! command -v "$ak" >/dev/null 2>&1; then
  echo "warning: $results: not verified, no ak is there (make builds it, AK=COMMAND names it)" >&2
  ak=none
fi
for folder in "$results" "$results"/*; do
  if [ "$ak" = none ] || [ ! -f "$folder/runs.csv" ]; then continue; fi
  if ! said=$("$ak" verify "$folder" 2>&1); then
    echo "$folder: ak verify rejects it: $(printf '%s\n' "$said" | tail -n 1)" >&2
    exit 2
  fi
done
paper=$(cd "${2:-$here/../paper}" && pwd)
out=$paper/generated

for part in fit figures tables numbers; do
  Rscript "$here/$part.R" "$results" "$out"
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
