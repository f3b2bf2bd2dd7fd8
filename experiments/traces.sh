#!/bin/sh
# traces.sh [NAME...]: record the traces that the sweeps replay and replay-memory play, into $BUILD/traces/NAME.trace.
#
#   gcc           cc1 -O1 over a file of this project
#   python3       python3 with PYTHONMALLOC=malloc: a dictionary of strings, sorted, and JSON of it read back
#   redis-server  2000 keys of lists and strings over a Unix socket, read back; needs redis-server and redis-cli
#
# One whose program is not there is left out with a line; exit 0. One that is there already is kept (remove it to have it again).
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
# shellcheck source=common.sh
. "$root/experiments/common.sh"
ak=$build/bin/ak
traces=$build/traces

# record NAME WHICH COMMAND...
record() {
  name=$1 which=$2
  shift 2
  "$ak" record -o "$traces/$name.trace" --children "$which" -- "$@" > "$dir/said" 2>&1 && return
  cat "$dir/said" >&2
  die 3 "$name: not recorded"
}

record_gcc() {
  if lacks gcc; then say "gcc: left out: $lacking" && return; fi
  record gcc cc1 gcc -O1 -std=gnu11 -D_GNU_SOURCE -I"$root/experiments/trace" -c "$root/experiments/trace/trace.c" -o "$dir/trace.o"
}

record_python3() {
  python=
  for one in /usr/bin/python3 "$(command -v python3)"; do # what PATH has may be a script that looks for one
    [ -x "$one" ] && python=$one && break
  done
  [ -n "$python" ] || { say "python3: left out: there is none" && return; }
  record python3 most env PYTHONMALLOC=malloc PYTHONHASHSEED=1 "$python" -S -s -c '
import json
words = {"key%d" % (i * 7919 % 10007): ["x" * (i % 97), i, {"n": i}] for i in range(5000)}
back = json.loads(json.dumps(words))
assert sorted(back) == sorted(words)'
}

# The server ends by itself: the client tells it to.
record_redis_server() {
  for tool in redis-server redis-cli; do
    has "$tool" || { say "redis-server: left out: no $tool (make deps-apps installs it)" && return; }
  done
  awk 'BEGIN {
    for (i = 0; i < 2000; i++) {
      printf "SET key:%d %0*d\n", i * 7919 % 2003, 1 + i % 400, i
      printf "RPUSH list:%d %d %d %d\n", i % 50, i, i + 1, i + 2
      if (i % 3 == 0) printf "GET key:%d\n", i
      if (i % 5 == 0) printf "DEL key:%d\n", i * 7919 % 2003 - 7
      if (i % 40 == 0) printf "LRANGE list:%d 0 -1\n", i % 50
    }
    print "SHUTDOWN NOSAVE" }' > "$dir/commands"
  socket=$dir/socket
  (
    for _ in $(seq 200); do
      redis-cli -s "$socket" PING > /dev/null 2>&1 && break
      sleep 0.05
    done
    redis-cli -s "$socket" < "$dir/commands" > /dev/null 2>&1
  ) &
  client=$!
  record redis-server first redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$dir" --daemonize no
  wait "$client"
}

need "$ak" "$build/lib/libak-record.so"
mkdir -p "$traces" || exit 3
[ $# -gt 0 ] || set -- gcc python3 redis-server
for name; do
  case $name in gcc | python3 | redis-server) ;; *) die 2 "no trace '$name'; there are gcc, python3 and redis-server" ;; esac
  [ -s "$traces/$name.trace" ] && continue
  case $name in
    gcc) record_gcc ;;
    python3) record_python3 ;;
    redis-server) record_redis_server ;;
  esac
done
