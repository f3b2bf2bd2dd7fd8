#!/bin/sh
# run.sh [--short | --full] [--doc FILE] [PART...]: tlfl beside its rivals, part by part, then the table with verdicts.
#
#   PART    instructions cpu latency trivial sharing scaling, or report (the table alone, of the rows that are there);
#           all without any
#   --short under 12 minutes (the default); --full about an hour; --tiny only shows that it works
#   --doc   put the table between the lines <!-- bench:begin --> and <!-- bench:end --> of FILE
#
# $SUBJECT is what is judged, a name of the registry or NAME=LIBRARY (default tlfl); $RIVALS, by blanks, are further
# rivals of either form. Rows go to build/bench (BENCH_OUT), raw; a part that is there is moved to PART.before.
# Exit 0 whatever the verdicts; 1 where a part could not measure; 2 and 3 as everywhere.
set -u
. "$(dirname "$0")/common.sh"
here=$root/experiments/bench
SUBJECT=${SUBJECT:-tlfl}
RIVALS=${RIVALS:-}
form=short doc='' failed=0
while [ $# -gt 0 ]; do
  case $1 in
    --short) form=short ;;
    --full) form=full ;;
    --tiny) form=tiny ;;
    --doc) [ $# -gt 1 ] || die 2 "--doc needs a file" && doc=$2 && shift ;;
    -*) die 2 "unknown option '$1': expected --short, --full, --tiny or --doc" ;;
    *) break ;;
  esac
  shift
done
all="instructions cpu latency trivial sharing scaling"
# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $all
# Names are looked at before anything earlier is moved away.
for name; do
  case " $all report " in *" $name "*) ;; *) die 2 "no part '$name': there are $all report" ;; esac
done
# A form's size: ops of the counted loops, launches of a trivial program, rounds and ops of the scaling, preset of sweeps.
case $form in
  tiny) ops=512 launches=8 rounds=2 scaling_ops=20000 preset=smoke ;;
  short) ops=5120 launches=100 rounds=6 scaling_ops=200000 preset=quick ;;
  full) ops=20480 launches=400 rounds=12 scaling_ops=2000000 preset=paper ;;
esac
export BENCH_FORM="$form"

# The rivals that Debian 12 ships, and those of `make peers`; $RELEASE and $PEERS name others, for a shorter run.
release=${RELEASE:-"glibc jemalloc mimalloc tcmalloc tbbmalloc"}
peers=${PEERS-"mimalloc-sid mimalloc-sid-nothp"}

need jq Rscript
count_check OPS "${OPS:-$ops}"
case " $* " in *" instructions "*) ops_check "${OPS:-$ops}" ;; esac
count_check LAUNCHES "${LAUNCHES:-$launches}"
count_check ROUNDS "${ROUNDS:-$rounds}"
[ -z "$doc" ] || [ -w "$doc" ] || die 2 "--doc: $doc cannot be written"
# The subject must be here; rivals that are not are skipped, but their names must be some.
# shellcheck disable=SC2086 # words
named=$(allocators "$SUBJECT" $RIVALS $release $peers) || exit $?
reason=$(printf '%s\n' "$named" | awk -F "$fs" 'NR == 1 && sub(/^!/, "", $2) { print $2 }')
[ -z "$reason" ] || [ "$*" = report ] || die 3 "$SUBJECT: $reason"

# sweep NAME: one sweep by ak, which skips those of its own list that are not here. With another subject or further
# rivals the list is ours, and what it names must be here.
sweep() {
  set -- "$1" "$here/$1.sweep"
  provenance "$1" ak run "$1.sweep" --preset "$preset"
  if [ "$SUBJECT$RIVALS${RELEASE:-}" = tlfl ]; then
    "$ak" run "$2" --preset "$preset" --out "$out/$1"
  else
    # shellcheck disable=SC2086 # words
    list=$(allocators $release $peers | awk -F "$fs" '$2 !~ /^!/ { print $1 }')
    # shellcheck disable=SC2086 # words
    "$ak" run "$2" --preset "$preset" --out "$out/$1" --allocators "$(printf '%s,' $list $RIVALS)$SUBJECT"
  fi
}

# part NAME: keep what is there, measure.
part() {
  for old in "$out/$1" "$out/$1.csv"; do
    [ ! -e "$old" ] || { rm -rf "$old.before" && mv "$old" "$old.before"; }
  done
  say "$1 ($form)"
  # shellcheck disable=SC2086 # words
  case $1 in
    instructions) OPS=${OPS:-$ops} "$here/instructions.sh" "$SUBJECT" tlfl-unchecked $release $peers $RIVALS bump ;;
    trivial) LAUNCHES=${LAUNCHES:-$launches} "$here/trivial.sh" "$SUBJECT" $release $RIVALS ;;
    scaling) ROUNDS=${ROUNDS:-$rounds} OPS=${OPS:-$scaling_ops} "$here/scaling.sh" "$SUBJECT" $release $RIVALS ;;
    cpu | latency | sharing) sweep "$1" ;;
  esac
}

for name; do
  [ "$name" != report ] || continue
  part "$name"
  code=$?
  [ $code -ne 2 ] || exit 2
  [ $code -eq 0 ] || failed=1
done
Rscript "$root/analysis/bench.R" "$out" "${SUBJECT%%=*}" || exit $?
[ -z "$doc" ] || "$here/splice.sh" "$doc" "$out/bench.md" || exit $?
exit $failed
