#!/bin/sh
# The kernels redis and http_foreign, whose process under test is a server of Debian's: that the row is that server's and
# the allocator the one that was asked for, that what cannot be right fails, and that nothing is left. Prints TAP.
# shellcheck disable=SC2317,SC2119,SC2120 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
mkdir "$dir/tmp" "$dir/empty" "$dir/fake"
TMPDIR=$dir/tmp
export TMPDIR
tlfl=$build/lib/libtlfl.so

# launch KERNEL OPTIONS...: under $preload, with programs in $path; its result in $dir/row, what it says in $dir/said
preload='' path=$PATH
launch() {
  program=$build/kernels/$1
  shift
  LD_PRELOAD=$preload PATH=$path "$(command -v timeout)" 120 "$program" --rest-s 0 "$@" > "$dir/row" 2> "$dir/said"
}
redis() { launch redis --ops 3200 --elements 1000 "$@"; }
http() { launch http_foreign --seconds 1 --connections 8 --load-threads 2 "$@"; }
value() { awk -v name="$1" '$1 == name { print $2; exit }' "$dir/row"; }
says() { grep -q "$1" "$dir/said" || { cat "$dir/said"; return 1; }; }

# well WHO KERNEL OPTIONS...: a launch that ends well, served by the object WHO, with every number that the server has
well() {
  who=$1
  shift
  "$@" || { cat "$dir/said"; return 1; }
  [ "$(value status)" = ok ] || { value status; return 1; }
  case $(value allocator_path) in *$who*) ;; *) value allocator_path; return 1 ;; esac
  for column in ops cpu_user_ns minor_faults rss_baseline_bytes rss_rest_bytes rss_load_bytes rss_after_bytes \
    request_mean_ms request_max_ms load_requests_per_s; do
    case $(value "$column") in '' | -) echo "no $column"; return 1 ;; esac
  done
  for column in rss_baseline_bytes rss_rest_bytes rss_load_bytes rss_after_bytes; do
    # The kernel's high-water mark counts in batches of pages.
    if [ "$(value "$column" | cut -d. -f1)" -gt $(($(value rss_peak_bytes) + 1048576)) ]; then
      echo "$column beyond the peak"
      return 1
    fi
  done
}

# fails CODE STATUS TEXT KERNEL OPTIONS...: without a number
fails() {
  code=$1 status=$2 text=$3
  shift 3
  "$@"
  got=$?
  [ "$got" -eq "$code" ] || { echo "exit $got, expected $code"; cat "$dir/said"; return 1; }
  says "$text" || return 1
  [ "$(value status)" = "$status" ] || { echo "status '$(value status)'"; return 1; }
  [ -z "$(value ops)$(value rss_peak_bytes)" ] || { echo "numbers in a row of status $status"; return 1; }
}
refused() { # refused TEXT KERNEL OPTIONS...: wrong usage
  text=$1
  shift
  "$@"
  [ $? -eq 2 ] && says "$text"
}
nothing_left() { ! ls "$dir"/tmp/* 2> /dev/null; }

# fake NAME TEXT: a program of that name in $dir/fake, which comes first in PATH
fake() {
  printf '#!/bin/sh\n%s\n' "$2" > "$dir/fake/$1"
  chmod +x "$dir/fake/$1"
}
faked() { # faked COMMAND...
  path=$dir/fake:$PATH
  "$@"
  got=$?
  path=$PATH
  return "$got"
}

# gone PROGRAM KERNEL_PID: once the kernel is killed its server is gone
gone() {
  children=$(pgrep -P "$2")
  kill -KILL "$2"
  for child in $children; do
    tries=0
    while kill -0 "$child" 2> /dev/null; do
      tries=$((tries + 1))
      [ "$tries" -lt 200 ] || { echo "$1 ($child) still runs"; return 1; }
      sleep 0.02
    done
  done
  [ -n "$children" ]
}

# started KERNEL PROGRAM OPTIONS...: a launch in the background, $pid; returns once its load runs
started() {
  name=$1 load=$2
  shift 2
  "$build/kernels/$name" "$@" > "$dir/row" 2> "$dir/said" &
  pid=$!
  tries=0
  until pgrep -P $pid "$load" > "$dir/child"; do
    tries=$((tries + 1))
    [ "$tries" -lt 500 ] || return 1
    sleep 0.02
  done
}

# ---- redis ----

if lacks redis-server redis-benchmark redis-cli pgrep; then
  skip "redis" "$lacking"
else
  real=$(command -v redis-server)
  for variant in lpush lrange_100 lrange_300 lrange_500 set get; do
    check "redis: $variant, verified" well libc.so redis --variant $variant --expect libc
  done
  preload=$tlfl
  check "redis: under tlfl" well libtlfl.so redis --expect "$tlfl"
  check "redis: two threads of the load, values of 10 KB" well libtlfl.so redis --load-threads 2 --value-bytes 10K
  preload=
  is "redis: it tells of its memory" "$(value used_memory_bytes | cut -d. -f1 | awk '{ print ($1 > 1e6) }')" 1

  large() {
    well libc.so redis --variant get --elements 100000 --value-bytes 200 && [ "$(value rss_baseline_bytes)" -gt 20000000 ]
  }
  check "redis: the resident memory is the server's" large

  fake redis-server "exec env -u LD_PRELOAD '$real' \"\$@\""
  check "redis: a server that says nothing is not measured" \
    fails 1 wrong_allocator 'does not say what serves it' faked redis
  is "redis: of that one no allocator is told" "$(value allocator_path)" ''
  if ldd "$real" | grep -q jemalloc; then
    fake redis-server "LD_PRELOAD=\${LD_PRELOAD%%:*} exec '$real' \"\$@\""
    check "redis: a server with an allocator of its own is not measured as if served" \
      fails 1 wrong_allocator 'is served by .*jemalloc.*, expected .*libc' faked redis
  else
    skip "redis: a server with an allocator of its own" "this redis-server has none"
  fi
  fake redis-server "exit 7"
  check "redis: a server that does not start" fails 3 skipped 'exit status 7' faked redis
  rm "$dir/fake/redis-server"

  bench=$(command -v redis-benchmark)
  fake redis-benchmark "'$bench' \"\$@\"; redis-cli -s \"\$2\" lset list 7 no"
  check "redis: a value that is not what it was" fails 1 verify_failed "value 7 " faked redis --variant lrange_100
  fake redis-benchmark "'$bench' \"\$@\"; redis-cli -s \"\$2\" lpop list"
  check "redis: a list that is too short" fails 1 verify_failed 'LLEN is 3199' faked redis
  fake redis-benchmark "shift 4; exec '$bench' -s '$dir'/tmp/ak-service-*/socket -n 10 \"\$@\""
  check "redis: a load that does less than it was asked for" fails 1 verify_failed 'commands' faked redis --variant get
  fake redis-benchmark "echo no more >&2; exit 5"
  check "redis: a load that fails" fails 1 verify_failed 'exit status 5: no more' faked redis
  fake redis-benchmark "kill -SEGV \$(pgrep -P \$PPID redis-server); sleep 10"
  check "redis: a server that crashes is no fast run" fails 1 crash 'under load: signal 11' faked redis

  cat > "$dir/crash.sweep" << 'EOF'
kernel = redis
allocators = glibc
threads = 1
placement = none
rest_s = 0
ops = 1600
reps = 1
EOF
  PATH=$dir/fake:$PATH "$build/bin/ak" run "$dir/crash.sweep" --preset smoke --out "$dir/crash" > "$dir/said" 2>&1
  is "ak run: its row says so" "$(grep -c ',crash,the program under test ended under load' "$dir/crash/runs.csv")" 1
  check "ak verify takes it" "$build/bin/ak" verify "$dir/crash"
  rm "$dir/fake/redis-benchmark"

  path=$dir/empty
  check "redis: not installed" fails 3 skipped 'make deps-apps' redis
  path=$PATH
  mkdir "$dir/tmp/a  b"
  TMPDIR="$dir/tmp/a  b"
  check "redis: a folder with blanks" well libc.so redis
  TMPDIR=$dir/none
  check "redis: no folder" fails 3 skipped "$dir/none: .*: TMPDIR names a folder to write to" redis
  TMPDIR=$dir/tmp
  rm -r "$dir/tmp/a  b"
  check "redis: one thread" refused threads redis --threads 2
  check "redis: whole pipelines" refused pipeline redis --ops 3201
  check "redis: no counters of another process" refused 'another process' redis --counters perf
  check "redis: not in the simulated machine" refused 'another process' redis --counters sim
  check "no folder is left" nothing_left

  started redis redis-benchmark --ops 100000000
  check "redis: nothing survives a kernel that is killed" gone redis-server $pid
  redis
  check "its folder goes with the next launch" nothing_left
fi

# ---- http_foreign ----

server=lighttpd
[ -x /usr/sbin/lighttpd ] || has lighttpd || server=nginx
if [ $server = nginx ] && ! [ -x /usr/sbin/nginx ] && ! has nginx; then
  skip "http_foreign" "neither lighttpd nor nginx is installed: make deps-apps"
elif lacks wrk pgrep; then
  skip "http_foreign" "$lacking"
else
  for variant in lighttpd nginx; do
    if [ -x /usr/sbin/$variant ] || has $variant; then
      check "http_foreign: $variant under wrk, verified" well libc.so http --variant $variant --expect libc
      preload=$tlfl
      check "http_foreign: $variant at a constant rate, under tlfl" \
        well libtlfl.so http --variant $variant --expect "$tlfl" --load rate --rate 1000
      is "http_foreign: $variant answered what was due" "$(value ops)" 1000
      preload=
    else
      check "http_foreign: no $variant" fails 3 skipped "no $variant" http --variant $variant
    fi
  done
  wrk=$(command -v wrk)
  # shellcheck disable=SC2016 # for the fake
  fake wrk 'for a; do case $a in */wrk.lua) site=${a%/*}/site ;; esac; done
'"'$wrk'"' "$@"
printf x | dd of="$site/app.js" bs=1 seek=9000 conv=notrunc 2> /dev/null'
  check "http_foreign: a byte that changed" fails 1 verify_failed 'after the load' faked http --variant $server
  fake wrk "kill -SEGV \$(pgrep -P \$PPID $server); sleep 10"
  check "http_foreign: a server that crashes is no fast run" \
    fails 1 crash 'under load: signal 11' faked http --variant $server
  path=$dir/empty
  check "http_foreign: no load" fails 3 skipped 'no wrk' http --variant $server
  path=$PATH
  check "http_foreign: one thread" refused threads http --threads 2
  check "http_foreign: a rate is for a rate" refused 'rate' http --rate 5
  check "no folder is left" nothing_left

  port=$((20000 + $$ % 10000))
  started http_foreign wrk --variant $server --port $port --seconds 20 --connections 4 --load-threads 1
  check "http_foreign: a port in use" fails 3 skipped "port $port is in use" http --variant $server --port $port
  check "http_foreign: nothing survives a kernel that is killed" gone $server $pid
  http --variant $server
  check "its folder goes with the next launch" nothing_left
fi
finish
