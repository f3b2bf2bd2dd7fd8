#!/bin/sh
# The scripts beside ak: a wrong argument or variable is exit 2, a tool that is not there exit 3, each with one line and
# before anything is measured or moved. Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name are not unreachable
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
bench=$root/experiments/bench
export BENCH_OUT="$dir/out"
skip_without "the scripts beside ak" jq Rscript gnuplot latexmk "$build/bin/ak"

# refused CODE PATTERN COMMAND...: ends with CODE and one line on stderr that matches, nothing on stdout
refused() {
  want=$1 pattern=$2
  shift 2
  checks=$((checks + 1))
  "$@" > "$dir/said" 2> "$dir/err" < /dev/null
  got=$?
  if [ $got -eq "$want" ] && grep -q -e "$pattern" "$dir/err" && [ "$(wc -l < "$dir/err")" -eq 1 ] && [ ! -s "$dir/said" ]; then
    echo "ok $checks - $(words "$@"): exit $want"
  else
    echo "not ok $checks - $(words "$@"): exit $got, not $want with one line '$pattern'"
    tail -n 5 "$dir/said" "$dir/err" | sed 's/^/#   /'
    failed=1
  fi
}
# words COMMAND...: without folders of this machine
words() { printf '%s' "$*" | sed "s,$root/,,g; s,$dir/,,g; s/^env //; s/PATH=[^ ]*/without ${taken:-}:/"; }

# ---- numbers and names in variables ----
for value in 0 abc -1 1.5 1234567890123; do
  refused 2 "RUNS='$value'" env RUNS="$value" "$root/tests/misuse/calibrate.sh" tlfl
done
refused 2 "LAUNCHES='0'" env LAUNCHES=0 "$bench/trivial.sh" glibc
refused 2 "SEED='x'" env SEED=x "$bench/trivial.sh" glibc
refused 2 "ROUNDS='x'" env ROUNDS=x "$bench/scaling.sh" glibc
refused 2 "OPS='2k'" env OPS=2k "$bench/scaling.sh" glibc
refused 2 "OPS='1000'.*256" env OPS=1000 "$bench/instructions.sh" glibc
refused 2 "OPS='1000'.*256" env OPS=1000 "$bench/run.sh" instructions
refused 2 "LAUNCHES='many'" env LAUNCHES=many "$bench/run.sh" trivial
refused 2 "ROUNDS='0'" env ROUNDS=0 "$bench/run.sh" scaling
refused 2 "'nobody' is no allocator" env RELEASE=nobody "$bench/run.sh" trivial
refused 2 "'nobody' is no allocator" env PEERS=nobody "$bench/run.sh" trivial
refused 2 "ROUNDS='none'" env ROUNDS=none "$root/tests/long.sh"
refused 2 "OPS='none'" env OPS=none "$root/tests/long.sh"
refused 2 "AK_DEPS='skp'" env AK_DEPS=skp "$root/experiments/deps.sh"
refused 3 "BUILD='a b': make cannot" env BUILD="a b" "$root/tests/run.sh" unit
refused 3 "BUILD='a b': make cannot" env BUILD="a b" "$bench/run.sh" report

# ---- arguments ----
refused 2 "unknown option '--bogus'" "$root/tests/misuse/calibrate.sh" --bogus
refused 2 "unknown allocator 'bogus'" "$root/tests/misuse/calibrate.sh" bogus
refused 2 "unknown option '--bogus'" "$root/tests/misuse/check.sh" --bogus
refused 2 "no column 'bogus'" "$root/tests/misuse/check.sh" bogus
refused 2 "'bogus': expected no arguments" "$root/experiments/peers.sh" bogus
refused 2 "LAUNCHES='0'" "$root/experiments/overhead.sh" 0
refused 2 "want \[LAUNCHES\]" "$root/experiments/overhead.sh" 1 2
refused 2 "unknown option '--ftch'" "$root/tests/guest/run.sh" --ftch
refused 2 "none.so: no such library" "$root/tests/guest/run.sh" "$dir/none.so"
refused 2 "want \[--long\] LIBRARY" "$root/tests/programs/run.sh"
refused 2 "unknown option '--bogus'" "$root/tests/programs/run.sh" --bogus
refused 2 "none.so: no such file" "$root/tests/programs/run.sh" "$dir/none.so"
refused 2 "no case 'bogus'" "$root/tests/programs/run.sh" "$build/lib/libbump.so" awk bogus
refused 2 "no target 'mips'" "$root/tests/cross/run.sh" musl mips
refused 2 "unknown option '--log'" "$root/tests/model/run.sh" --log
refused 2 "'more': expected --long alone" "$root/tests/model/run.sh" --long more
refused 2 "'bogus': expected no arguments" "$root/tests/long.sh" bogus
refused 2 "no group 'bogus'" "$root/tests/run.sh" unit bogus
refused 2 "unknown linter 'bogus'" "$root/tests/lint.sh" bogus
refused 2 "want AK PRESET" "$root/experiments/pipeline.sh" ak smoke
refused 3 "no $dir/none/ak" "$root/experiments/pipeline.sh" "$dir/none/ak" smoke "$dir/results" paper
refused 2 "PAPER='$dir/none'" env PAPER="$dir/none" "$root/experiments/pipeline.sh" "$build/bin/ak" smoke "$dir/results" paper
refused 2 "unknown preset 'qick'" "$root/experiments/pipeline.sh" "$build/bin/ak" qick "$dir/results" paper
refused 2 "want RESULTS" "$root/analysis/paper.sh"
refused 2 "no such folder" "$root/analysis/paper.sh" "$dir/none"
refused 2 "no paper.tex" "$root/analysis/paper.sh" "$dir" "$dir"
refused 3 "AK='none/ak'" env AK=none/ak "$root/analysis/paper.sh" "$dir"
refused 3 "tests/unit is not there: run make tests" env BUILD="$dir/none" "$root/tests/run.sh" unit
refused 3 "is not there: run make tests" env BUILD="$dir/none" "$root/tests/long.sh"

# ---- tools ----
mkdir "$dir/bin"
ln -s /usr/bin/* "$dir/bin/"
ln -s /bin/* "$dir/bin/" 2> /dev/null # the same, where /bin is /usr/bin
# without TOOL COMMAND...
without() {
  taken=$1
  shift
  mv "$dir/bin/$taken" "$dir/taken"
  refused 3 "no $taken: make deps installs it" env PATH="$dir/bin" "$@"
  mv "$dir/taken" "$dir/bin/$taken"
}
if [ -x /usr/bin/jq ] && [ -x /usr/bin/Rscript ] && [ -x /usr/bin/gnuplot ] && [ -x /usr/bin/latexmk ]; then
  without jq "$root/tests/misuse/calibrate.sh" tlfl
  without jq "$bench/run.sh" cpu
  without jq "$bench/instructions.sh" tlfl
  without jq "$bench/trivial.sh" tlfl
  without jq "$root/experiments/peers.sh"
  without gnuplot "$root/experiments/pipeline.sh" "$build/bin/ak" smoke "$dir/results" paper
  without latexmk "$root/analysis/paper.sh" "$dir"
  without Rscript "$bench/run.sh" cpu
else
  skip "scripts without a tool" "they are elsewhere"
fi
is "nothing was measured on the way" "$(ls "$BENCH_OUT")" ""
finish
