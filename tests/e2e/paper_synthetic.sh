#!/bin/sh
# The paper from made-up results, end to end: all figures and tables are there, no reference is undefined, parts that
# were not measured say so, and the same results give the same numbers. Prints TAP. Touches only a temporary folder.
# shellcheck disable=SC2317 # the functions below are called through check
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"

skip_without "paper from synthetic results" Rscript gnuplot latexmk pdftotext
paper_copy() { # a fresh folder with the paper's sources only
  mkdir -p "$1"
  cp "$root"/paper/paper.tex "$root"/paper/refs.bib "$1"
}

text_of() { # plain order keeps the words of a cell together; line ends become blanks
  pdftotext "$1/paper.pdf" - | tr "\n\f" "  " >"$1/flat.txt" && pdftotext -layout "$1/paper.pdf" "$1/paper.txt"
}
shows() { grep -q -- "$2" "$1/flat.txt"; }
has_not() { dir_of=$1; shift; ! grep -n "$@" "$dir_of/paper.txt"; }
all_numbered() { # all_numbered DIR WORD N: "WORD 1:" to "WORD N:"
  for k in $(seq "$3"); do
    grep -q "$2 $k:" "$1/paper.txt" || { echo "$2 $k is missing"; return 1; }
  done
}
drawn() { # every figure as PDF and SVG
  for name in throughput latency metadata falseshare rss c2c model coherence timed; do
    for format in pdf svg; do
      [ -s "$1/generated/$name.$format" ] || { echo "$name.$format is missing"; return 1; }
    done
  done
}
same_bytes() {
  [ "$(cd "$1/generated" && ls)" = "$(cd "$2/generated" && ls)" ] || { echo "other files are there"; return 1; }
  for file in "$1"/generated/* "$1/paper.pdf"; do
    cmp "$file" "$2/${file#"$1"/}" || return 1
  done
}
failed_status() { # failed_status STATUS COMMAND...
  wanted=$1
  shift
  "$@"
  [ $? -eq "$wanted" ]
}

cd "$root" || exit 1
export AK=none # made-up folders hold no plan and no proof: ak verify would reject them
figures=$(grep -c 'begin{figure}' paper/paper.tex)
tables=$(grep -c 'begin{table}' paper/paper.tex)

full=$dir/full
paper_copy "$full"
check "synthetic results are made" Rscript tests/R/synthetic.R "$dir/results"
check "the paper builds from them" analysis/paper.sh "$dir/results" "$full"
check "its text can be read" text_of "$full"
check "every figure is drawn as PDF and SVG" drawn "$full"
check "all $figures figures are in the text" all_numbered "$full" Figure "$figures"
check "all $tables tables are in the text" all_numbered "$full" Table "$tables"
check "no reference is undefined" has_not "$full" -F "??"
check "no missing value shows as NA or NaN" has_not "$full" -w -e NA -e NaN
check "failed launches are shown" shows "$full" '2 crash'
check "an odd allocator name prints as it is" shows "$full" 'odd_name%#1'
check "oversubscribed rows are not called reproduced" shows "$full" 'oversubscribed: 64 threads on 4 CPUs'
check "the missing counters are given as the reason" shows "$full" 'this machine has no hardware counters'
check "alpha across nodes is not identifiable on one node" shows "$full" 'not identifiable here: one NUMA node'
check "no machine path in the generated text" sh -c "! grep -l -e '$dir' '$full'/generated/*.tex '$full'/generated/*.csv"

# The results copied, the paper elsewhere, another language and time zone: not one byte differs.
again="$dir/copied again"
paper_copy "$again"
cp -r "$dir/results" "$dir/results elsewhere"
LOCALE=C
if localedef -i de_DE -f UTF-8 "$dir/de_DE.UTF-8" >/dev/null 2>&1; then LOCALE=de_DE.UTF-8; fi
elsewhere() {
  (cd "$dir" && LOCPATH=$dir LC_ALL=$LOCALE LANG=$LOCALE TZ=Asia/Tokyo "$root/analysis/paper.sh" "$dir/results elsewhere" "$again")
}
check "the paper builds elsewhere (locale $LOCALE)" elsewhere
check "the same results give the same bytes" same_bytes "$full" "$again"

part=$dir/part
paper_copy "$part"
mkdir -p "$dir/few"
cp -r "$dir/results/falseshare" "$dir/few"
check "the paper builds from one sweep alone" analysis/paper.sh "$dir/few" "$part"
check "its text can be read" text_of "$part"
check "what is missing says so" shows "$part" 'not measured here: no rows of the churn kernel'
check "the claims are not yet measured" shows "$part" '9 not yet measured'
check "all $figures figures keep their places" all_numbered "$part" Figure "$figures"

none=$dir/none
paper_copy "$none"
mkdir -p "$dir/empty"
check "the paper builds without any results" analysis/paper.sh "$dir/empty" "$none"
sed -i '1s/wall_ns/wall/' "$dir/few/falseshare/runs.csv"
check "a results folder without a contract column is refused with exit 2" \
  failed_status 2 Rscript analysis/fit.R "$dir/few" "$dir/refused"

finish
