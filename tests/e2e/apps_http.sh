#!/bin/sh
# The kernel http_server: what it answers to clients of every kind, under which loads it runs, what it refuses, and what
# is left of it when it is killed. Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
kernel=$build/kernels/http_server
skip_without "http_server" "$kernel"
mkdir "$dir/tmp" "$dir/empty"
TMPDIR=$dir/tmp
export TMPDIR

# server OPTIONS...: a launch under $preload, with programs in $path; its result is in $dir/row, what it says in
# $dir/said
timeout=$(command -v timeout)
preload='' path=$PATH
server() {
  LD_PRELOAD=$preload PATH=$path "$timeout" 120 "$kernel" --threads 2 --placement none --connections 8 \
    --load-threads 2 --seconds 1 --rest-s 0 "$@" > "$dir/row" 2> "$dir/said"
}
value() { awk -v name="$1" '$1 == name { print $2; exit }' "$dir/row"; }
nothing_left() { ! ls "$dir"/tmp/* 2> /dev/null; }
says() { grep -q "$1" "$dir/said" || { cat "$dir/said"; return 1; }; }

# program NAME TEXT: a load of that text in $dir/NAME; it is given URL and SITE
program() {
  printf '#!/bin/sh\n%s\n' "$2" > "$dir/$1"
  chmod +x "$dir/$1"
}

# ---- clients ----

http=$root/kernels/apps/http_server
${CC:-gcc} -std=gnu11 -O1 -D_GNU_SOURCE -I"$http" \
  "$root/tests/e2e/fixtures/http_client.c" "$http/client.c" "$http/tree.c" -o "$dir/client" ||
  die 1 "the client does not compile"
program clients "exec '$dir/client' \"\$@\" > '$dir/cases'"
for variant in malloc pool; do
  : > "$dir/cases"
  server --load "$dir/clients" --idle-ms 2000 --variant $variant
  is "$variant: the launch with those clients ends well" "$? $(value status)" "0 ok"
  is "$variant: all cases were tried" "$([ "$(wc -l < "$dir/cases")" -gt 50 ] && echo yes)" yes
  while read -r line; do
    check "$variant: ${line#*ok }" test "${line%% *}" = ok
  done < "$dir/cases"
done
check "no folder is left" nothing_left

# ---- loads ----

verified() { # verified OPTIONS...: ok, with requests and their latency
  server "$@" || { cat "$dir/said"; return 1; }
  [ "$(value status)" = ok ] && [ "$(value ops)" -gt 0 ] && [ "$(value request_mean_ms)" != - ] &&
    [ "$(value request_max_ms)" != - ] && [ "$(value rss_load_bytes)" != - ]
}
exactly() { [ "$(value ops)" = "$1" ] || { echo "$(value ops) requests, $1 were due"; return 1; }; }
if has wrk; then
  check "wrk" verified
  check "wrk, 64 threads on a pool" verified --threads 64 --variant pool
  preload=$build/lib/libtlfl.so
  check "wrk, under tlfl" verified --expect "$preload"
  preload=
else
  skip "the load wrk" "wrk is not installed: make deps-apps"
fi
check "a constant rate" verified --load rate --rate 2000
check "it answers what was due, no more and no less" exactly 2000
check "a constant rate on a pool, by one thread" \
  verified --load rate --rate 1000 --threads 1 --load-threads 1 --variant pool
check "no folder is left" nothing_left

# ---- what cannot be right fails ----

fails() { # fails CODE TEXT OPTIONS...
  code=$1 text=$2
  shift 2
  server "$@"
  got=$?
  [ "$got" -eq "$code" ] || { echo "exit $got, expected $code"; cat "$dir/said"; return 1; }
  says "$text"
}
program spoils "printf x | dd of=\"\$2/app.js\" bs=1 seek=9000 conv=notrunc 2> /dev/null"
check "a file that changed meanwhile" \
  fails 1 "after the load: GET /app.js: not the bytes of the file" --load "$dir/spoils"
program wrong_seed "exec '$build/bin/ak-http-load' \"\${1##*:}\" 4 2 1 50 2"
check "the generator finds bytes that are wrong" \
  fails 1 "exit status 1: ak-http-load: GET /.*: not the bytes" --load "$dir/wrong_seed"
check "connections that the server closes are missed" \
  fails 1 "requests of the load .rate. failed or were not answered" --load rate --rate 4 --idle-ms 50
program fails "echo no luck >&2; exit 5"
check "a load that fails" fails 1 "exit status 5: no luck" --load "$dir/fails"
if has wrk; then
  mkdir "$dir/fake"
  program fake/wrk "for url; do :; done
'$build/bin/ak-http-load' \"\${url##*:}\" 4 2 1 500 1 | sed 's/^ak bytes.*/ak bytes 12345/'"
  path=$dir/fake:$PATH
  check "a load that got other bytes than were sent" fails 1 "sent [0-9]* bytes, the load got 12345" --connections 4
  path=$PATH
fi

# ---- what is not there ----

path=$dir/empty
check "no wrk: exit 3" fails 3 "http_server: skipped: wrk is not here: make deps-apps installs it"
path=$PATH
is "and a row that says so" "$(value status)" skipped
check "a load that is not there: exit 3" fails 3 "the load /nowhere/load is not here" --load /nowhere/load
program again "'$kernel' --port \"\${1##*:}\" --load rate --rate 10 --connections 1 --load-threads 1 \\
  > '$dir/again.row' \\
  2> '$dir/again.said'
echo \$? > '$dir/again.code'"
server --load "$dir/again"
is "a port in use: exit 3" "$(cat "$dir/again.code")" 3
check "and which" grep -q "port [0-9]* is in use: give another one by --port" "$dir/again.said"
# shellcheck disable=SC3045 # dash and bash have it
few_files() {
  (ulimit -n 200 && fails 3 "500 connections take [0-9]* open files, and no more than 200" \
    --connections 500 --load rate --rate 10)
}
check "more connections than open files: exit 3" few_files
no_folder() { TMPDIR=/proc fails 3 "/proc: .*TMPDIR names a folder" --load rate --rate 10; }
check "no place for the files: exit 3" no_folder
if [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -le 80 ]; then
  skip "a port that only root may take" "anyone may here"
elif [ "$(id -u)" -ne 0 ]; then
  check "a port that only root may take: exit 3" fails 3 "port 80 is not allowed: give one above 1023" --port 80 --load rate --rate 10
elif command -v setpriv > /dev/null; then
  low_port() {
    setpriv --bounding-set=-net_bind_service "$kernel" --port 80 --load rate --rate 10 > "$dir/low" 2>&1
    [ $? -eq 3 ] && grep -q "port 80 is not allowed: give one above 1023" "$dir/low"
  }
  check "a port that only root may take: exit 3" low_port
else
  skip "a port that only root may take" "no setpriv"
fi
check "more threads of the load than connections: exit 2" fails 2 "load-threads" --connections 1
check "a rate for wrk: exit 2" fails 2 "rate" --rate 5
check "no rate for a rate: exit 2" fails 2 "rate" --load rate
check "a load that is no path: exit 2" fails 2 "expected wrk, rate" --load ab
check "the simulated machine: exit 2" fails 2 "counters sim: the load is a program of its own" --check --counters sim

# ---- killed ----

program waits "echo \"\$\$ \${1##*:}\" > '$dir/waits.new'; mv '$dir/waits.new' '$dir/waiting'; exec sleep 300"
gone() { # gone PID: within 20 s; a process that ended and was not waited for yet is gone
  for _ in $(seq 200); do
    case $(cut -d ' ' -f 3 "/proc/$1/stat" 2> /dev/null) in '' | Z) return 0 ;; esac
    sleep 0.1
  done
  return 1
}
for signal in KILL TERM; do
  rm -f "$dir/waiting"
  "$kernel" --load "$dir/waits" > /dev/null 2>&1 &
  pid=$!
  for _ in $(seq 300); do
    [ ! -e "$dir/waiting" ] || break
    sleep 0.1
  done
  read -r load port < "$dir/waiting"
  # shellcheck disable=SC2016 # expands there
  check "it listens" sh -c '! "$1" --refused "$2"' sh "$dir/client" "$port"
  kill -$signal "$pid"
  wait "$pid" 2> /dev/null
  check "SIG$signal: its load ends too" gone "$load"
  check "SIG$signal: nothing listens any more" "$dir/client" --refused "$port"
done
check "the next launch" server --load rate --rate 10
check "it removed what they left" nothing_left

finish
