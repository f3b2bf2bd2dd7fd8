#!/bin/sh
# paper.sh RESULTS [PAPER]: fit, draw, write tables and numbers, and build PAPER/paper.pdf (default: paper/ of the suite).
# RESULTS holds one folder a sweep. Parts that were not measured say so; they do not fail the build.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: analysis/paper.sh RESULTS [PAPER]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
results=$1
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
