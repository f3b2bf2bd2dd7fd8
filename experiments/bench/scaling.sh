#!/bin/sh
# scaling.sh [ALLOCATOR...]: what threads without a CPU of their own cost: churn with 2 and with 64 threads, the live set
# of all together the same, each beside the same loop without an allocator (--no-alloc).
#
#   ALLOCATOR   as instructions.sh has it; default: tlfl and four others
#
# $ROUNDS rounds (default 6) of $OPS cycles in all (default 200000), in random order. Rows go to build/bench/scaling.csv.
set -u
. "$(dirname "$0")/common.sh"

LIVE_TOTAL=6400
ROUNDS=${ROUNDS:-6}
OPS=${OPS:-200000}
count_check ROUNDS "$ROUNDS"
count_check OPS "$OPS"

[ $# -gt 0 ] || set -- tlfl glibc jemalloc mimalloc tcmalloc
[ -x "$build/kernels/churn" ] || die 3 "$build/kernels/churn is not there: run make"
table=$(allocators "$@") || exit $?
provenance scaling "ROUNDS=$ROUNDS OPS=$OPS" "$0" "$@"
rows=$out/scaling.csv
echo round,allocator,form,threads,ops,wall_ns,cpu_ns,reason > "$rows"
round=0
while [ $round -lt "$ROUNDS" ]; do
  round=$((round + 1))
  printf '%s\n' "$table" | awk -v seed=$round -v fs="$fs" 'BEGIN { srand(seed) }
    { for (threads = 2; threads <= 64; threads *= 32) for (form = 0; form < 2; form++)
        print rand() fs $0 fs threads fs (form ? "stub" : "alloc") }' | sort -n |
    while IFS=$fs read -r _ name library settings threads form; do
      case $library in
        '!'*)
          echo "$round,$name,$form,$threads,,,,$(reason_text "${library#!}")"
          continue
          ;;
      esac
      stub=
      [ "$form" = alloc ] || stub=--no-alloc
      # shellcheck disable=SC2086 # words
      env $settings ${library:+LD_PRELOAD="$(loadable "$library")"} "$build/kernels/churn" --threads "$threads" --ops-total "$OPS" \
        --live-blocks $((LIVE_TOTAL / threads)) --touch line --passes throughput --counters none --seed $round \
        --expect "${library:-libc}" $stub < /dev/null > "$out/scaling.said" 2>&1 ||
        { echo "$round,$name,$form,$threads,,,,$(reason_text "$(tail -n 1 "$out/scaling.said")")" && continue; }
      awk -v start="$round,$name,$form,$threads" '{ v[$1] = $2 }
        END { printf "%s,%s,%s,%.0f,\n", start, v["ops"], v["wall_ns"], v["cpu_user_ns"] + v["cpu_sys_ns"] }' "$out/scaling.said"
    done >> "$rows"
done
rm -f "$out/scaling.said"
