#!/bin/sh
# the server under redis-benchmark, then a snapshot by a forked child, read again
# needs: redis-server redis-cli redis-benchmark
# size: short
# limit: 300
requests=2000
[ -z "$FULL" ] || requests=50000
server=
trap '[ -z "$server" ] || kill "$server"' EXIT
start() {
  redis-server --port 0 --unixsocket "$PWD/s" --dir "$PWD" --save '' --appendonly no >server.log 2>&1 &
  server=$!
  for _ in $(seq 1 100); do
    redis-cli -s s ping >/dev/null 2>&1 && return
    sleep 0.1
  done
  tail server.log >&2
  exit 1
}
stop() {
  redis-cli -s s shutdown "$1" >/dev/null
  wait "$server"
  status=$?
  server=
  [ $status -eq 0 ] || exit $status
}
start
redis-benchmark -s s -n "$requests" -c 20 -q -r 1000 -t set,get,incr,lpush,rpop,sadd,hset,zadd,spop,mset,lrange_300 >bench 2>&1 ||
  { cat bench >&2; exit 1; }
tr '\r' '\n' <bench | sed -n 's/^\([A-Z][^:]*\): [0-9.]* requests per second.*/\1/p' | sort -u
redis-cli -s s flushall async >/dev/null
awk '{ print "RPUSH list" $2, $1; print "HSET hash", $2, $1; print "ZADD sorted", $1, "m" $2; print "APPEND text" $2 % 50, $1 }' "$LINES_FILE" |
  head -n $((requests * 4)) | redis-cli -s s --pipe | tail -n 1
ask() {
  redis-cli -s s dbsize
  redis-cli -s s --raw zrange sorted 0 -1 withscores | cksum
  redis-cli -s s --raw hgetall hash | sort | cksum
  for k in 1 50 976; do redis-cli -s s --raw lrange list$k 0 -1 | cksum; done
  redis-cli -s s --raw get text7 | cksum
}
ask
redis-cli -s s bgsave >/dev/null
redis-cli -s s memory purge >/dev/null
stop save
start
ask
stop nosave
