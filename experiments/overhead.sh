#!/bin/sh
# overhead.sh [LAUNCHES]: what each kernel costs by itself, with a stub in place of the allocator: CPU ns an op in the
# throughput pass, least and median of some launches (default 7). null is the loop with two calls into the stub.
#
# touch=page and the messages of remote_free are part of the work, not of the harness; churn is shown with touch=none too.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
# shellcheck source=common.sh
. "$root/experiments/common.sh"
[ $# -le 1 ] || die 2 "want [LAUNCHES]"
launches=${1:-7}
count_check LAUNCHES "$launches"
[ -x "$build/kernels/null" ] || die 3 "$build/kernels/null is not there: run make"
printf '%-58s %8s %8s\n' "kernel (--no-alloc)" least median

while read -r options; do
  i=0
  while [ "$i" -lt "$launches" ]; do
    # shellcheck disable=SC2086 # a kernel and its options
    "$build"/kernels/$options --no-alloc --passes throughput --counters none --seed "$((i + 1))" |
      awk '{ v[$1] = $2 } END { printf "%.3f\n", (v["cpu_user_ns"] + v["cpu_sys_ns"]) / v["ops"] }'
    i=$((i + 1))
  done | sort -n | awk -v what="$options" '{ v[NR] = $1 } END { printf "%-58s %8.2f %8.2f\n", what, v[1], v[int((NR + 1) / 2)] }'
done <<'LIST'
null --ops 5000000
fastpath --variant pair --ops 5000000
fastpath --variant lifo --ops 5000000
fastpath --variant fifo --ops 5000000
churn --touch none --ops 5000000
churn --touch none --lifetime-dist fifo --ops 5000000
churn --touch none --lifetime-dist bimodal --ops 5000000
churn --touch line --ops 5000000
churn --touch page --ops 5000000
false_active --threads 2 --writes 1 --ops 3000000
false_passive --threads 2 --writes 1 --ops 3000000
remote_free --threads 2 --ops 3000000
remote_free --threads 2 --batch 64 --ops 3000000
bleed --ops 5000000
thread_churn --objects 0 --ops 3000
thread_churn --objects 1000 --ops 3000
realloc_grow --variant byte --ops 5000000
realloc_grow --variant double --ops 5000000
large --touch none --ops 5000000
large --touch page --ops 10000
fragment --ops 5000000
skeleton --ops 5000000
LIST
