#!/bin/sh
# Recorded allocation events: a program whose events are known, counted exactly; what ends a process early; real programs,
# played back under two allocators; what is refused. Prints TAP.
# shellcheck disable=SC2317,SC2016 # functions that check calls by name, and words of inner shells
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
ak=$build/bin/ak
replay=$build/kernels/replay
cd "$dir" || exit 3

code() {
  "$@" > "$dir/out" 2> "$dir/err" < /dev/null
  echo $?
}
refused() { # refused WHAT CODE PATTERN COMMAND...
  what=$1 want=$2 pattern=$3
  shift 3
  is "$what: exit $want" "$(code "$@")" "$want"
  check "$what: says why" grep -q -- "$pattern" "$dir/err"
}
nothing_left() { ! ls -d "$dir"/*.recording-* "$dir"/*.new-* 2> /dev/null; }
shown() { "$ak" record --show "$1" | sed -n "s/^$2 *//p"; } # shown FILE WORDS

${CC:-cc} -O1 -std=gnu11 -D_GNU_SOURCE -fno-builtin "$root/tests/e2e/fixtures/traced.c" -o traced -lpthread || exit 3

# plays FILE OPTIONS...: it verifies under the C library and under tlfl, and every event was done
plays() {
  file=$1
  shift
  calls=$(shown "$file" calls | cut -d: -f1)
  for library in "" "$(loadable "$build/lib/libtlfl.so")"; do
    LD_PRELOAD=$library "$replay" --trace "./$file" --counters none --expect "${library:-libc}" "$@" > "$dir/row" || return 1
    [ "$(awk '$1 == "ops" { print $2 }' "$dir/row")" = "$calls" ] || { cat "$dir/row"; return 1; }
  done
}

# ---- known events ----
is "a program of four threads" "$(code "$ak" record -o threads.trace -- ./traced threads)" 0
# 4 x 1000 by the threads and two more; 1 and, for each pair of threads, what pthread_create asks for, at most once a thread
is "its mallocs, callocs, aligned blocks, reallocs and frees" \
  "$(shown threads.trace calls | sed 's/calloc [1-5],/calloc 1 to 5,/; s/^[0-9]*: //')" \
  "malloc 4002, calloc 1 to 5, aligned 2, realloc 5, free 4005"
is "frees by another thread than the maker" "$(shown threads.trace 'on other threads')" "4000 of the objects taken"
is "what began before the recorder" "$(shown threads.trace inherited)" "0 objects that were there before"
is "threads that another one started" "$("$ak" record --show threads.trace | grep -c 'started by 0')" 4
is "sizes are as requested" "$("$ak" record --show threads.trace | awk '$1 == 65536 { print $4 }')" 4000
for touch in none first all; do
  check "it plays: touch $touch" plays threads.trace --touch $touch --passes throughput
done
check "all passes, one after another" plays threads.trace --mem-steps 7
check "in recorded time" plays threads.trace --pace recorded --passes throughput
no_sooner() { awk '$1 == "wall_ns" { wall = $2 } $1 == "trace_duration_ms" { last = $2 * 1e6 } END { exit !(wall >= 0.9 * last) }' "$dir/row"; }
check "and takes as long" no_sooner # the first event has a time too, so a little less
looks() { "$replay" --trace ./threads.trace --passes memory --mem-steps 20 --touch all --counters none --json | jq -e '
  [.timeline[] | .[2]] as $live | .row.status == "ok" and .row.wall_ns == null and .row.ops_per_thread == null and .row.threads == 5 and
  ($live | length) >= 20 and ($live | max) > 100000000 and ($live[-1] == 0)'; }
check "looks at memory: live bytes rise above 100 MB, and end with what is left" looks
check "a stub in the allocator's place" "$replay" --trace ./threads.trace --touch all --no-alloc --counters none

# ---- what ends a process ----
is "a child of fork" "$(code "$ak" record -o fork.trace --children each -- ./traced fork)" 0
is "the child: its calls" "$(shown fork.trace.2 calls)" "1010: malloc 500, calloc 0, aligned 0, realloc 0, free 510"
is "the child: blocks of its parent" "$(shown fork.trace.2 inherited)" "10 objects that were there before"
check "the child: that it left by _exit is told" sh -c '"$1" record --show fork.trace.2 | grep -q "ended: by _exit"' sh "$ak"
check "the child: it plays" plays fork.trace.2 --touch all
is "the busiest process is kept" "$(code "$ak" record -o most.trace -- ./traced fork; shown most.trace calls | cut -d: -f1)" "0
1010"
is "the command itself is kept" "$(code "$ak" record -o first.trace --children first -- ./traced fork; shown first.trace calls)" "0
10: malloc 10, calloc 0, aligned 0, realloc 0, free 0"
is "exec without exit handlers" "$(code "$ak" record -o exec.trace --children each -- ./traced exec)" 0
is "before the exec" "$(shown exec.trace.1 calls | cut -d: -f1)" 200
is "after it" "$(shown exec.trace.2 calls | cut -d: -f1)" 200
refused "a crash" 1 "signal 11" "$ak" record -o crash.trace -- ./traced crash
is "the crash: all until then" "$(shown crash.trace calls | cut -d: -f1)" 200
check "the crash is in the trace" sh -c '"$1" record --show crash.trace | grep -q "ended: signal 11"' sh "$ak"
check "the crash: it plays" plays crash.trace
is "signals in between" "$(code "$ak" record -o signals.trace -- ./traced signals; shown signals.trace calls)" "0
40000: malloc 20000, calloc 0, aligned 0, realloc 0, free 20000"
refused "the command fails" 1 "exit status 3" "$ak" record -o exit.trace -- sh -c 'exit 3'
check "its trace is there" "$ak" record --show exit.trace
check "nothing else is left" nothing_left

# ---- what is left running ----
# until_true COMMAND...: it holds within ten seconds
until_true() {
  n=0
  until "$@"; do
    n=$((n + 1))
    [ $n -lt 200 ] || return 1
    sleep 0.05
  done
}
gone() { ! kill -0 "$1" 2> /dev/null || grep -q "^State:.Z" "/proc/$1/status" 2> /dev/null; }
ended() { [ -s "$1" ] && until_true gone "$(cat "$1")"; }
# A command with a child that has left its session; both are known by their files.
left="setsid sh -c 'echo \$\$ > child; exec sleep 4777' & echo \$\$ > command"
start() { # start NAME COMMAND
  rm -f child command
  "$ak" record -o "$1.trace" -- sh -c "$2" 2> said &
  recorder=$!
  until_true [ -s child ] && until_true [ -s command ]
}
start waits "$left; exec sleep 4777"
kill -TERM $recorder
check "after a signal: says what it waits for" until_true grep -q "has ended, but processes that it started still run" said
check "the command has the signal" ended command
kill -TERM $recorder
wait $recorder
is "a second signal ends them: exit 1 for the first one" $? 1
check "they are gone" ended child
check "the trace is there" "$ak" record --show waits.trace
start stays "$left; trap : TERM; while :; do sleep 0.1; done"
kill -TERM $recorder
check "a command that takes a signal and goes on is told" until_true grep -q "still runs after signal 15" said
kill -KILL $recorder
wait $recorder 2> /dev/null
check "ak is killed: the command too" ended command
check "and what it left" ended child
check "and no trace, nor part of it, remains" until_true sh -c '! ls -d stays.trace* 2> /dev/null' sh
start second "$left; exec sleep 4777"
kill -KILL "$(cat "/proc/$recorder/task/$recorder/children")"
wait $recorder
is "its second process is killed: exit 3" $? 3
check "the command is killed too" ended command
check "and what that left" ended child
rm -r second.trace.recording-*

# ---- real programs ----
for name in gcc python3 redis-server; do
  BUILD=$BUILD "$root/experiments/traces.sh" "$name" > said 2>&1
  file=$build/traces/$name.trace
  if [ ! -s "$file" ]; then
    skip "$name" "$(cat said)"
    continue
  fi
  ln -s "$file" "$name.trace"
  check "$name: more than 10,000 calls" sh -c '[ "$1" -gt 10000 ]' sh "$(shown $name.trace calls | cut -d: -f1)"
  check "$name: it plays" plays $name.trace --touch all --passes throughput
done

# ---- what is refused ----
head -c 300 threads.trace > cut.trace
refused "a trace that is cut" 2 "cut.trace: at byte [0-9]*: the file ends" "$ak" record --show cut.trace
refused "a trace that is cut, to the kernel" 2 "at byte [0-9]*: the file ends" "$replay" --trace ./cut.trace
cp threads.trace bad.trace
printf '\377' | dd of=bad.trace bs=1 seek=1000 conv=notrunc 2> said
refused "a damaged trace" 2 "at byte [0-9]*: the checksum of the block is wrong" "$ak" record --show bad.trace
refused "a damaged trace, to the kernel" 2 "at byte [0-9]*: the checksum" "$replay" --trace ./bad.trace
refused "no trace at all" 2 "at byte 0: no trace" "$ak" record --show traced
refused "no such file" 2 "nothing.trace: No such file" "$ak" record --show nothing.trace
${CC:-cc} -O1 -std=gnu11 -D_GNU_SOURCE -I "$root/experiments/trace" -o tracehuge "$root/tests/e2e/fixtures/tracehuge.c" \
  "$root/experiments/trace/trace.c" "$root/experiments/trace/crc32.c" || exit 3
./tracehuge 10 3 > sound.trace
./tracehuge 63 3 > size.trace
./tracehuge 57 200 > live.trace
is "a trace made by hand" "$(shown sound.trace "live at end")" "3072 bytes in 3 blocks"
refused "a size that no program can have" 2 "size.trace: at byte [0-9]*: a size" "$ak" record --show size.trace
refused "such a size, to the kernel" 2 "at byte [0-9]*: a size" "$replay" --trace ./size.trace
refused "more live bytes than there are" 2 "more live bytes" "$ak" record --show live.trace
refused "so many, to the kernel" 2 "below 4 GiB" "$replay" --trace ./live.trace
is "no such file, to the kernel: skipped" "$(code "$replay" --trace ./nothing.trace --json; jq -r .row.status out)" "3
skipped"
refused "no trace is given" 2 "--trace: expected a file" "$replay"
refused "another number of threads" 2 "--threads: the trace has 5" "$replay" --trace ./threads.trace --threads 2
refused "no command" 2 "no command" "$ak" record
refused "no such command" 2 "^ak: record: no-such-command: command not found" "$ak" record -- no-such-command
refused "no such program" 2 "^ak: record: ./nope: No such file" "$ak" record -- ./nope
refused "no such child" 1 "no such process made a call, and other.trace is the busiest one.s; there were: sh, traced$" \
  "$ak" record -o other.trace --children nobody -- sh -c "./traced leave; :"
is "and the busiest one is kept" "$(shown other.trace calls | cut -d: -f1)" 200
if ${CC:-cc} -O1 -static -std=gnu11 -D_GNU_SOURCE -fno-builtin "$root/tests/e2e/fixtures/traced.c" -o static -lpthread 2> said; then
  refused "a static program" 3 "static" "$ak" record -o x.trace -- ./static leave
else
  skip "a static program" "no static C library"
fi
printf '%s\n' '#include <stddef.h>' 'static char m[1 << 20]; static size_t u;' \
  'void *malloc(size_t n) { void *p = m + u; u += (n + 15) & ~15ul; return p; }' 'void free(void *p) { (void)p; }' \
  'void *calloc(size_t a, size_t b) { return malloc(a * b); }' 'void *realloc(void *p, size_t n) { (void)p; return malloc(n); }' \
  'int main(void) { free(malloc(10)); return 0; }' > own.c
if ${CC:-cc} -O1 -fno-builtin own.c -o own 2> said; then
  refused "a program with a malloc of its own" 3 "own malloc" "$ak" record -o x.trace -- ./own
else
  skip "a program with a malloc of its own" "does not compile"
fi
refused "an environment that is cleared" 3 "clears the environment" "$ak" record -o x.trace -- env -i ./traced leave
check "and no trace is left of them" sh -c '! ls x.trace*' sh

# ---- places: told before the command runs ----
mkdir folder
mkfifo pipe
ln -s pipe pipe-link
ln -s nowhere dangling
ln -s pipe many.2
: > many.1
for place in "" . folder folder/ pipe pipe-link dangling missing/x.trace; do
  refused "-o '$place'" 2 "record: -o .*give -o" "$ak" record -o "$place" -- touch ran
done
refused "one of each is a pipe" 2 "record: -o many.2: a device, a pipe" "$ak" record -o many --children each -- touch ran
check "and no command has run" [ ! -e ran ]
check "what is there is as it was" sh -c '[ -p pipe ] && [ -L pipe-link ] && [ -L dangling ] && [ ! -s many.1 ]'
echo old > behind.trace
chmod 640 behind.trace
ln -s behind.trace link.trace
is "a link to a file" "$(code "$ak" record -o link.trace -- ./traced leave)" 0
check "the link stays, and the trace is behind it" sh -c '[ -L link.trace ] && [ "$(stat -c %a behind.trace)" = 640 ] &&
  "$1" record --show behind.trace' sh "$ak"
check "nothing else is left" nothing_left

# ---- no room ----
refused "a limit of file sizes" 3 "File too large" sh -c 'ulimit -f 200; exec "$1" record -o full.trace -- ./traced signals' sh "$ak"
check "and no trace is left" sh -c '! ls full.trace*' sh
# full SIZE WHAT: on a file system of that size, in a mount namespace that goes away with it
full() {
  unshare -rm sh -c 'mount -t tmpfs -o size="$1" none small || exit 77
    "$2" record -o small/full.trace -- ./traced "$3"
    code=$?
    [ -z "$(ls -A small)" ] || exit 78
    exit $code' sh "$1" "$ak" "$2"
}
mkdir small
if unshare -rm mount -t tmpfs none small 2> said; then
  refused "a disk that is full before the command ends, and nothing is left on it" 3 "No space left" full 256k busy
  refused "a disk that is full when the trace is written, and nothing is left on it" 3 "No space left" full 208k signals
else
  skip "a full disk" "a small file system cannot be mounted here"
fi
check "nothing else is left" nothing_left
finish
