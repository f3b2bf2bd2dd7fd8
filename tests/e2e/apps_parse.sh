#!/bin/sh
# The kernels ndjson and file_hash: they verify, and fail where bytes or memory are not what they should be; and sweeps under
# a profiler and with warm-ups: what such rows have, what is said where there are no samples, --resume and ak verify. Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
# shellcheck source=fixtures/kernel_rows.sh
. "$root/tests/e2e/fixtures/kernel_rows.sh"
skip_without "the parser" jq "$build/kernels/ndjson" "$build/bin/ak"
live=
trap '[ -z "$live" ] || kill -KILL "$live"; rm -rf "$dir"' EXIT
tlfl=$build/lib/libtlfl.so
kernel() { # kernel NAME OPTIONS...
  program=$build/kernels/$1
  shift
  timeout 60 "$program" "$@"
}

# ok KERNEL OPTIONS...: an ok row whose ops are those of all threads
ok() {
  run "$@" || { cat "$dir/err"; return 1; }
  [ "$(column status)" = ok ] && [ "$(column ops)" -eq $(($(column threads) * $(column ops_per_thread))) ]
}

# ends CODE STATUS COMMAND...: exit code and status of the row
ends() {
  want=$1 status=$2
  shift 2
  "$@" > "$dir/row" 2> "$dir/err"
  got=$?
  echo "exit $got, $(column status): $(cat "$dir/err")"
  [ "$got" -eq "$want" ] && [ "$(column status)" = "$status" ]
}

# ---- ndjson ----

for retain in 0 1 500; do
  check "ndjson keeps $retain records" ok ndjson --ops 3000 --text 100000 --retain $retain --threads 3
done
check "ndjson reads less than its text" ok ndjson --ops 10
check "ndjson keeps more records than it reads" ok ndjson --ops 100 --retain 1000 --text 4K
preload=$tlfl
check "ndjson under tlfl" ok ndjson --ops 3000 --text 100000 --retain 100 --threads 2
preload=
kept() { # every line's record is kept until the end: about 300 B each, besides the text
  run ndjson --ops 20000 --text 100K --retain 20000 && [ $(($(column rss_peak_bytes) - $(column rss_baseline_bytes))) -gt 4000000 ]
}
check "ndjson: records that are kept take memory" kept
check "ndjson without memory" ends 1 oom prlimit --as=80000000 timeout 60 "$build/kernels/ndjson" --ops 1000000 --retain 1000000
overlap() { # blocks that overlap: a crash or a refusal, never ok
  preload=$dir/overlap.so
  if run ndjson --ops 5000 --text 100000 --retain 100; then
    got=0
  else
    got=$?
  fi
  preload=
  [ "$got" -ne 0 ] && [ "$(column status)" != ok ]
}
if ${CC:-gcc} -shared -fPIC -O1 -fno-builtin -DFAULT_overlap "$root/tests/e2e/fixtures/bad_malloc.c" -o "$dir/overlap.so" 2> "$dir/said"; then
  check "ndjson: a malloc whose blocks overlap" overlap
else
  skip "ndjson: a malloc whose blocks overlap" "the library does not compile here"
fi

# ---- file_hash ----

nothing_in() { [ -z "$(ls -A "$1")" ]; }
if lacks "$build/kernels/file_hash"; then
  skip "file_hash" "libxxhash-dev or libssl-dev is missing"
else
  mkdir "$dir/place"
  for chunk in 7 4096 1M 1G; do
    check "file_hash reads $chunk bytes at once" ok file_hash --file-bytes 50001 --chunk $chunk --threads 2 --ops 2 --folder "$dir/place"
  done
  check "file_hash into a block at a boundary" ok file_hash --file-bytes 50001 --align 4096 --folder "$dir/place"
  refused() { kernel file_hash --align 3 > "$dir/row" 2> "$dir/err"; [ $? -eq 2 ] && grep -q -e '--align: expected a power of two' "$dir/err"; }
  check "file_hash: a boundary that is none: exit 2" refused
  check "file_hash of one byte" ok file_hash --file-bytes 1 --folder "$dir/place"
  check "file_hash: no such place" ends 3 skipped kernel file_hash --folder "$dir/nowhere"
  check "file_hash: it says what to do" grep -q "make room, or name another place" "$dir/err"
  check "file_hash: a disk without room" ends 3 skipped kernel file_hash --file-bytes 1000G --folder "$dir/place"
  check "file_hash: a limit on files" ends 3 skipped prlimit --fsize=100000 timeout 60 "$build/kernels/file_hash" --file-bytes 1M --folder "$dir/place"
  check "file_hash without memory" ends 1 oom prlimit --as=100000000 timeout 60 "$build/kernels/file_hash" --chunk 1G --folder "$dir/place"
  check "file_hash leaves nothing" nothing_in "$dir/place"
  # begin OPS: hashes a file OPS times; $live is the process, $fd its file
  begin() {
    "$build/kernels/file_hash" --file-bytes 1M --ops "$1" --folder "$dir/place" > "$dir/row" 2> "$dir/err" &
    live=$!
    for _ in $(seq 200); do
      for fd in /proc/"$live"/fd/*; do
        case $(readlink "$fd") in "$dir/place/"*) return 0 ;; esac
      done
      sleep 0.02
    done
    return 1
  }
  altered() { # one byte is written over while it hashes
    begin 1000 && printf x | dd of="$fd" bs=1 seek=77777 conv=notrunc 2> /dev/null || return 1
    wait "$live"
    got=$?
    live=
    cat "$dir/err"
    [ "$got" -eq 1 ] && [ "$(column status)" = verify_failed ] && grep -q 'came to the hashes of what was written' "$dir/err"
  }
  check "file_hash: a byte that changes" altered
  killed() {
    begin 1000000 && kill -KILL "$live" || return 1
    wait "$live" 2> /dev/null
    live=
    nothing_in "$dir/place"
  }
  check "file_hash that is killed leaves nothing" killed
fi

# ---- a profiler ----

cd "$dir" || exit 1
ak=$build/bin/ak
cat > share.sweep <<'EOF'
kernel = ndjson
allocators = glibc, tlfl
ops = 60000
text = 200000
profile = no, yes
EOF
sed 's/60000/1000/' share.sweep > small.sweep
run_sweep() { "$ak" run "$1" --preset smoke --out "$2" > out.txt 2> err.txt || { cat out.txt err.txt; return 1; }; }
# metric FOLDER NAME FIELD: of each row, in one line; fields 4 is the value, 5 the reason
metric() { awk -F , -v name="$2" -v at="$3" '$2 == name { line = line (n++ ? " " : "") $at } END { print line }' "$1/metrics.csv"; }
planned() { grep -c "profile=yes" "$1/plan.csv"; }
all_empty() { [ -z "$(metric "$1" malloc_share 4 | tr -d ' ')" ] && [ -z "$(metric "$1" libc_share 4 | tr -d ' ')" ]; }

mkdir bin
for tool in env ls; do ln -s "$(command -v $tool)" bin/; done
without() { PATH=$dir/bin run_sweep small.sweep "$1"; }
check "no perf: rows all the same" without none
check "no perf: the reason, twice for two rows" [ "$(grep -c 'perf is not on PATH' none/metrics.csv)" -eq 4 ]
check "no perf: no share" all_empty none
is "half of the rows are profiled" "$(planned none)" 2
check "no perf: ak verify" "$ak" verify none

# What ak verify sees in a row of an application: COLUMN of the first row times N plus M.
sees() { # sees TEXT COLUMN N M
  rm -rf tampered
  cp -r none tampered
  awk -F '"' -v want="$2" -v n="$3" -v m="$4" '
    NR == 1 { count = split($0, head, ","); for (i = 1; i <= count; i++) if (head[i] == want) at = i }
    NR == 2 { # a quoted field may hold commas: they are set aside
      line = ""
      for (i = 1; i <= NF; i++) {
        if (i % 2 == 0) gsub(",", "\001", $i)
        line = line (i > 1 ? "\"" : "") $i
      }
      count = split(line, field, ",")
      field[at] = sprintf("%.0f", field[at] * n + m)
      line = field[1]
      for (i = 2; i <= count; i++) line = line "," field[i]
      gsub("\001", ",", line)
      $0 = line
    }
    { print }' none/runs.csv > tampered/runs.csv
  "$ak" verify tampered > out.txt 2>&1
  if [ $? -ne 1 ] || ! grep -q "$1" out.txt; then cat out.txt; return 1; fi
}
check "ak verify sees another peak" sees "rss_peak_bytes" rss_peak_bytes 2 0
check "ak verify sees a base above the peak" sees "rss_baseline_bytes .* is above" rss_baseline_bytes 99 0
check "ak verify sees more CPU time than there was" sees "cpu_user_ns and cpu_sys_ns are" cpu_user_ns 50 1000000000
check "ak verify sees that CPU time is gone" sees "run_delay_ns and blocked_ns are" cpu_user_ns 0 0
check "ak verify sees more CPUs than there are" sees "cpus .*, but the machine" cpus 1 4096

# fake COMMAND: a perf whose record runs the command without taking samples, but where it is `true`, and whose script is COMMAND
fake() {
  printf '#!/bin/sh\nPATH=/usr/bin:/bin\n[ "$1" = record ] || %s\nwhile [ "$1" != -- ]; do shift; done\nshift\n%s\n' "$1" "${2:-exec \"\$@\"}" > bin/perf
  chmod +x bin/perf
}
fake "exit 3" 'echo "no permission" >&2; exit 129'
check "a perf that fails: rows all the same" without refused
check "a perf that fails: its words" [ "$(grep -c 'perf record: exit status 129: no permission' refused/metrics.csv)" -eq 4 ]
fake "exit 3"
check "a perf script that fails: rows all the same" without silent
check "a perf script that fails: the reason" [ "$(grep -c 'perf script: exit status 3' silent/metrics.csv)" -eq 4 ]
fake 'exec seq 1000'
check "a perf script that prints other things: rows all the same" without odd
check "a perf script that prints other things: no share" all_empty odd

rm -rf bin
if lacks perf; then
  skip "the share of malloc and free" "perf is not installed"
else
  check "under perf" run_sweep share.sweep real
  why=$(metric real malloc_share 5)
  case $why in
    *paranoid* | *"perf record"*) skip "the share of malloc and free" "perf may not be used here: $why" ;;
    *)
      between() { # 60,000 lines take a tenth of a second or more: a share, neither nothing nor all of the time
        metric real malloc_share 4 | awk '{ exit !(NF == 2 && $1 > 0.01 && $1 < 0.9 && $2 > 0.01 && $2 < 0.9) }' ||
          { metric real malloc_share 4; metric real share_samples 4; return 1; }
      }
      check "two shares between 0 and 1" between
      in_libc() { # tlfl is not the C library: there malloc's share is no part of libc's
        id=$(awk -F , '/tlfl/ && /profile=yes/ { print $1 }' real/plan.csv)
        awk -F , -v id="$id" '$1 == id && $2 == "libc_share" { exit !($4 < 0.9) }' real/metrics.csv
      }
      check "and of the C library" in_libc
      ;;
  esac
  check "under perf: ak verify" "$ak" verify real
  sed -i '$d' real/runs.csv
  check "--resume makes the row again" "$ak" run share.sweep --preset smoke --out real --resume
  check "--resume: ak verify" "$ak" verify real
  is "nothing of perf is left here" "$(ls -d perf.data* 2> /dev/null)" ""
fi
sed 's/^profile.*/profile = maybe/' share.sweep > wrong.sweep
wrong() { "$ak" run wrong.sweep --preset smoke --out wrong > out.txt 2> err.txt; [ $? -eq 2 ] && grep -q "wrong.sweep:5: profile = 'maybe', expected one of yes, no" err.txt; }
check "profile = maybe: exit 2 and where" wrong
printf 'kernel = churn\nallocators = glibc\nprofile = yes\ncounters = sim\n' > sim.sweep
simulated() { "$ak" run sim.sweep --preset smoke --out sim > out.txt 2> err.txt; [ $? -eq 2 ] && grep -q "sim.sweep:3: profile = yes, but the simulated machine" err.txt; }
check "profile = yes in the simulated machine: exit 2 and where" simulated

# ---- warm-ups: counted by a library that writes a letter whenever a process begins with it ----

cat > counted.c <<'EOF'
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void count(void)
{
    int fd = open("COUNTS", O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(fd, "x", 1) == 1)
        close(fd);
}
EOF
sed -i "s|COUNTS|$dir/counts|" counted.c
if ${CC:-gcc} -shared -fPIC -O1 counted.c "$root/tests/e2e/fixtures/wrapper.c" -fno-builtin -Wl,--build-id -o counted.so 2> said; then
  printf 'kernel = null\nallocators = glibc\nops = 100\nreps = 2\n' > cold.sweep
  { cat cold.sweep; echo 'warmup = 3'; } > warm.sweep
  launches() { # launches SWEEP OUT: processes that began with the library
    rm -f counts
    "$ak" run "$1.sweep" --preset smoke --reps 2 --allocators "counted=$dir/counted.so" --out "$2" > out.txt 2> err.txt || cat out.txt err.txt
    wc -c < counts
  }
  cold=$(launches cold cold) warm=$(launches warm warm)
  is "warmup = 3: three launches more of a cell" "$((warm - cold))" 3
  is "they are no rows" "$(wc -l < warm/runs.csv)" 3
  is "meta.json tells" "$(jq .warmup warm/meta.json)" 3
  check "warm-ups: ak verify" "$ak" verify warm
  sed -i '$d' warm/runs.csv
  sed 's/= 3/= 4/' warm.sweep > changed && cp warm.sweep kept.sweep && cp changed warm.sweep
  other() { "$ak" run warm.sweep --preset smoke --reps 2 --allocators "counted=$dir/counted.so" --out warm --resume > out.txt 2> err.txt; [ $? -eq 2 ] && grep -q "has warmup '\?3" err.txt; }
  check "--resume with another number: exit 2" other
else
  skip "warm-ups" "the library does not compile here"
fi

finish
