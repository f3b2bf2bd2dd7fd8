#!/bin/sh
# ak compare, as a new user would type it: what it says of good commands, bad ones, and those that cannot be compared. Prints TAP.
set -u
# shellcheck source=tests/e2e/fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
skip_without "ak compare" jq "${CC:-gcc}" "$build/bin/ak" "$build/bin/ak-launch" "$build/lib/libtlfl.so" "$build/lib/libak-witness.so"
# Without a blank on the way to it; with one, further down.
mkdir "$dir/tmp" && export TMPDIR="$dir/tmp"
cd "$dir" || exit 1

# Launches under perf are slow to start: they are only where the share is looked at.
ak() { "$build/bin/ak" "$@"; }
quick() { # quick ARGUMENTS...: ak compare with tlfl, without a profile
  ak compare --no-profile --allocators tlfl "$@"
}
code() { "$@" > out 2> err < /dev/null; echo $?; }
refused() { # refused WHAT CODE PATTERN ARGUMENTS...
  what=$1 want=$2 pattern=$3
  shift 3
  is "$what: exit $want" "$(code ak compare "$@")" "$want"
  check "$what: says why in one line" sh -c 'grep -q -- "$1" err && [ "$(wc -l < err)" -eq 1 ] && [ ! -s out ]' sh "$pattern"
}
# column FILE NAME [FILTER]: the values of a column, of the rows that awk's FILTER takes (c["name"] is a column's number).
# No field before the command, which is the last column, holds a comma here.
column() {
  awk -F, -v want="$2" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } '"${3:-1}"' { print $c[want] }' "$1"
}
built() { ${CC:-gcc} -std=gnu11 -O1 -fno-builtin "$@" || { echo "Bail out! a program does not build"; exit 1; }; }

cat > work.c <<'E'
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    volatile char *kept[1000] = {0};
    for (long i = 0; i < (argc > 1 ? atol(argv[1]) : 100000); i++) {
        free((void *)kept[i % 1000]);
        kept[i % 1000] = memset(malloc(64), 1, 64);
    }
    return 0;
}
E
cat > own.c <<'E'
#include <stddef.h>
#include <string.h>
static char heap[1 << 24] __attribute__((aligned(16)));
static size_t at;
void *malloc(size_t n) { void *p = heap + at; at += (n + 31) & ~(size_t)15; return p; }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }
E
built work.c -o work
built work.c own.c -o own
built -shared -fPIC own.c -o libown.so
built work.c -L. -lown -Wl,-rpath,"$dir" -o linked

# ---- what cannot be ----

refused "no command" 2 "no command"
refused "nothing after --" 2 "no command" --runs 1 --
refused "a command without --" 2 "then -- COMMAND" true
refused "an unknown option" 2 "did you mean '--runs'" --run 3 -- true
refused "runs that are none" 2 "whole number from 1" --runs 0 -- true
refused "a signal that is none" 2 "expected a signal" --ready true --load true --stop TREM -- true
refused "a load without ready" 2 "expected both" --load true -- true
refused "a stop without a server" 2 "expected all" --stop INT -- true
refused "an empty load" 2 "--load ''" --ready true --load '' -- true
refused "an empty ready" 2 "--ready ''" --ready ' ' --load true -- true
refused "an empty CSV" 2 "--csv '', expected a file" --csv '' -- true
refused "an empty plot" 2 "--plot '', expected a file" --plot '' -- true
refused "one file for two" 2 "expected two files" --csv x.svg --plot ./x.svg -- true
refused "a name of the registry for another library" 2 "is a name of the registry: choose another" --allocators tlfl="$dir/libown.so" -- true
refused "an unknown allocator" 2 "did you mean 'tlfl'" --allocators tlfll -- true
refused "an allocator twice" 2 "twice" --allocators tlfl,tlfl -- true
refused "a library that is not there" 3 "nothing was run" --allocators mine=/no/such.so -- true
refused "a plot of another kind" 2 "ends in .svg or .pdf" --plot x.png -- true
refused "an input that is not there" 2 "No such file" --stdin none -- true
refused "a command that is not there" 2 "command not found" -- no-such-command
refused "a path that is not there" 2 "No such file" -- ./none
refused "a folder" 2 "a folder" -- "$dir"
refused "the folder one is in" 2 "\.: a folder" -- .
: > text && chmod +x text
refused "a file of no kind" 2 "neither an ELF program nor a script" -- ./text
chmod -x text
refused "a file that may not be run" 2 "not executable" -- ./text
refused "a CSV in no folder" 3 "No such file" --csv none/x.csv --allocators tlfl -- true
mkdir bin && ln -s "$(command -v true)" bin/
is "a plot without gnuplot: exit 3" "$(PATH=$dir/bin code ak compare --plot x.svg -- true)" 3
check "it says what is missing" grep -q "gnuplot is not on PATH" err

refused "a program with its own malloc" 3 "brings its own malloc" -- ./own
cp work setuid && chmod u+s setuid && cp work setgid && chmod g+s setgid
refused "a set-uid program" 3 "set-uid" -- ./setuid
refused "a set-gid program" 3 "set-gid" -- ./setgid
if ${CC:-gcc} -static -O1 work.c -o static 2> said; then
  refused "a static program" 3 "static program" -- ./static
  printf '#! %s/static -x\n' "$dir" > script && chmod +x script
  refused "a script that a static program runs" 3 "./script is run by .*static" -- ./script
  refused "a shell that becomes a static program" 3 "became a program that did not load" --no-profile --allocators tlfl -- sh -c 'exec ./static'
  refused "a shell whose work a static program does" 3 "reached only about .*\./static, which loaded nothing" --no-profile --allocators tlfl -- sh -c './static 5000000; :'
else
  skip "static programs" "the compiler makes none"
fi
refused "a program without its environment" 3 "its environment was cleared" --no-profile --allocators tlfl -- env -i ./work
if has musl-gcc && musl-gcc work.c -o musl 2> said; then
  refused "a program of musl" 3 "musl" -- ./musl
else
  skip "a program of musl" "no musl-gcc: make deps-long installs it"
fi
is "nothing was left by any of these" "$(ls tmp)" ""

# ---- a good command ----

is "a command: exit 0" "$(code ak compare --allocators tlfl --runs 6 --seed 7 --csv a.csv --plot a.svg -- ./work 100000)" 0
check "the heading counts them" grep -q "^medians of 6 launches under" out
check "the table has both" sh -c 'grep -q "^glibc .* 6 " out && grep -q "^tlfl .* 6 " out'
is "no line of the table is wider than 120" "$(sed -n '/^allocator/,/^$/p' out | awk 'length > 120' | wc -l)" 0
check "a verdict in words" grep -Eq '^tlfl +(worth it|not worth it|costs memory|cannot tell yet): ' out
check "the share, or why there is none" grep -Eq '^malloc and free take [0-9.]+ %|^share in malloc and free: not known: .' out
check "says what peak RSS is" grep -q 'largest process' out
check "a plot" grep -q '<svg' a.svg
is "six timed launches each" "$(column a.csv allocator '$c["kind"] == "timed"' | sort | uniq -c | tr -s ' ' | tr '\n' ,)" " 6 glibc, 6 tlfl,"
is "every launch well" "$(column a.csv status | sort -u)" ok
is "tlfl's launches are served by tlfl" "$(column a.csv served_by '$c["allocator"] == "tlfl" && $c["kind"] == "timed"' | sort -u)" \
  "$(realpath "$build/lib/libtlfl.so")"
is "the others are not" "$(column a.csv served_by '$c["allocator"] == "glibc" && $c["kind"] == "timed"' | sort -u | sed 's|.*/||')" libc.so.6
check "times, memory and faults are there" sh -c '! printf "%s\n" "$1" | grep -Evq "^[1-9][0-9]*$"' sh \
  "$(for q in wall_ns rss_peak_bytes minor_faults; do column a.csv $q '$c["kind"] == "timed"'; done)"
column a.csv order '$c["kind"] == "timed" && $c["allocator"] == "tlfl"' | sort -u > orders
is "the order changes" "$(tr '\n' ' ' < orders)" "1 2 "
column a.csv allocator '$c["kind"] == "timed"' > first.order
quick --runs 6 --seed 7 --csv b.csv -- ./work 1000 > out 2> err
is "and is the seed's" "$(column b.csv allocator '$c["kind"] == "timed"')" "$(cat first.order)"

is "JSON: exit 0" "$(code quick --runs 6 --csv j.csv --json -- ./work 50000)" 0
check "it is JSON with a verdict" jq -e '.allocators[1] | .name == "tlfl" and .launches_ok == 6 and (.verdict.verdict | length > 0)' out
# Six pairs: the median ratio is the geometric mean of the middle two, the interval the extremes.
column j.csv wall_ns '$c["kind"] == "timed" && $c["allocator"] == "glibc" { print $c["round"], "glibc", $c["wall_ns"] } 0' > walls
column j.csv wall_ns '$c["kind"] == "timed" && $c["allocator"] == "tlfl" { print $c["round"], "tlfl", $c["wall_ns"] } 0' >> walls
awk '{ w[$1, $2] = $3 } END { for (i = 1; i <= 6; i++) printf "%.17g\n", w[i, "tlfl"] / w[i, "glibc"] }' walls | sort -g > ratios
is "the ratio is that of the rows" \
  "$(awk '{ r[NR] = $1 } END { printf "%.6f %.6f %.6f", sqrt(r[3] * r[4]), r[1], r[6] }' ratios)" \
  "$(jq -r '.allocators[1].wall | [.ratio, .low, .high] | map(. * 1000000 | round / 1000000) | .[]' out | xargs printf '%.6f %.6f %.6f')"
is "five launches: exit 0" "$(code quick --runs 5 --warmup 0 --json -- ./work 1000)" 0
check "no interval from them, and no verdict" jq -e '.allocators[1] | .wall.low == null and .wall.high == null and
  .verdict.verdict == "cannot tell yet" and .verdict.more_launches == 1' out

# ---- trees, input, names with blanks ----

echo 'int f(void) { return 1; }' > f.c
is "a compiler: exit 0" "$(code quick --runs 1 --csv gcc.csv -- "${CC:-gcc}" -c f.c -o f.o)" 0
check "one launch is one" grep -q "^medians of 1 launch under" out
check "it, its compiler and its assembler are all served" sh -c '[ "$1" -ge 3 ] && [ "$1" = "$2" ]' sh \
  "$(column gcc.csv processes '$c["kind"] == "timed" && $c["allocator"] == "tlfl"')" \
  "$(column gcc.csv processes_served '$c["kind"] == "timed" && $c["allocator"] == "tlfl"')"
# all_served WHAT COMMAND: of a shell's line in which a signal ends what does the work
all_served() {
  is "$1: exit 0" "$(code quick --runs 1 --csv cut.csv -- sh -c "$2")" 0
  is "$1: all processes are served, under the default too" \
    "$(column cut.csv status '$c["status"] == "ok" && $c["processes"] >= 3 && $c["processes"] == $c["processes_served"] && $c["cpu_served"] == 1' | wc -l)" 4
}
seq 200000 > n
all_served "a pipe whose reader ends first" 'sort -r n | head -3'
all_served "a program that timeout ends" 'timeout 0.3 ./work 1000000000; true'
is "a tree with one that is not: exit 0" "$(code quick --runs 1 --csv tree.csv -- sh -c './work 500000; ./own 100000')" 0
check "it says which" grep -q "tlfl served 2 of the 3 processes.*own, whose malloc is of its own" out
is "a program of another default: exit 0" "$(code ak compare --no-profile --runs 1 --allocators tlfl,glibc --csv linked.csv -- ./linked 1000)" 0
check "it says what the default is" grep -q "note: malloc comes from .*libown.so even when nothing is preloaded" out
is "and glibc competes with it" "$(column linked.csv served_by '$c["kind"] == "timed"' | sed 's|.*/||' | sort | tr '\n' ' ')" \
  "libc.so.6 libown.so libtlfl.so "
mkdir "a b" && cp work "a b/it's" && echo 1000 > "a b/in" && cp "$build/lib/libtlfl.so" "a b/libmine.so"
printf '#!/bin/sh\nread -r n && exec "$0/../it'"'"'s" "$n"\n' > "a b/run it"
sed -i 's|\$0/\.\.|${0%/*}|' "a b/run it" && chmod +x "a b/run it"
is "blanks everywhere: exit 0" \
  "$(code env TMPDIR="$dir/a b" "$build/bin/ak" compare --no-profile --allocators "mine=$dir/a b/libmine.so" --runs 1 --csv "a b/c.csv" --stdin "a b/in" -- "a b/run it")" 0
is "served by the library there" "$(column "a b/c.csv" served_by '$c["allocator"] == "mine" && $c["kind"] == "timed"')" "$dir/a b/libmine.so"
cat > "a b/words" <<'W'
#!/bin/sh
printf '[%s]' "$@" > "$WORDS"
W
chmod +x "a b/words"
set -- "a, \"b\"" "it's" "$(printf 'two\nlines\t\\x')" "$(printf '\377a\302\233\303\251')" "" 'x=$HOME*' ä
export WORDS="$dir/given"
if has gnuplot; then
  mkdir "with_one's" # an underscore and a quote are signs of gnuplot's
  is "a plot where names have signs: exit 0" \
    "$(code env TMPDIR="$dir/with_one's" "$build/bin/ak" compare --no-profile --allocators tlfl --runs 1 --plot "p_q's.svg" -- sh -c ': a\b_c')" 0
  check "its title shows them" grep -q 'a\\b_c' "p_q's.svg"
else
  skip "a plot where names have signs" "no gnuplot"
fi
is "words of all kinds: exit 0" "$(code quick --runs 1 --csv words.csv --json -- "a b/words" "$@")" 0
check "JSON holds the command in one line of UTF-8" sh -c 'jq -er .command out > line && [ "$(wc -l < line)" -eq 1 ] && iconv -f UTF-8 -t UTF-8 line > said'
check "so does the CSV" sh -c 'iconv -f UTF-8 -t UTF-8 words.csv > said && [ "$(sed "s/\"\"/\"/g" words.csv | grep -cF -- "$(cat line)")" -eq 4 ]'
if has bash; then
  cp given want && rm given
  bash -c "$(cat line)"
  check "a shell takes it for the same words" cmp given want
else
  skip "a shell takes it for the same words" "no bash"
fi
is "an output of many bytes: exit 0" "$(code quick --runs 1 -- seq 200000)" 0

# ---- failures ----

is "a command that fails: exit 1" "$(code quick --runs 2 --csv fail.csv -- sh -c 'echo a cause >&2; exit 7')" 1
check "it says so, with its words" sh -c 'grep -q "fails by itself" out && grep -q "exit status 7" out && grep -q "| a cause" out'
is "one row, with no number" "$(column fail.csv wall_ns | wc -l):$(column fail.csv wall_ns):$(column fail.csv exit_code):$(column fail.csv status)" "1::7:failed"
is "one that fails under one allocator: exit 1" \
  "$(code quick --runs 2 --csv some.csv -- sh -c 'case $LD_PRELOAD in *tlfl*) kill -11 $$ ;; esac')" 1
check "it says which" grep -q "^tlfl  not measured: signal 11" out
is "the other is measured" "$(column some.csv status '$c["kind"] == "timed"' | sort | uniq -c | tr -s ' ')" " 2 ok"
is "one that hangs: exit 1" "$(code quick --runs 1 --timeout 1 -- sleep 1000)" 1
check "it says so" grep -q "ran past --timeout" out
echo 'int nothing;' > n.c && built -shared -fPIC n.c -o libn.so
refused "a preloaded library that is no allocator" 3 "malloc is served by .*nothing was run" --allocators no="$dir/libn.so" -- ./work 10
is "nothing was left by any of these" "$(ls tmp)" ""

# ---- servers ----

cat > server <<'E'
#!/bin/sh
trap 'rm -f up; exit 0' TERM
: > up
while :; do sleep 0.05; done
E
chmod +x server
is "a server: exit 0" "$(code ak compare --allocators tlfl --runs 1 --csv server.csv --ready 'test -e up' --load 'sleep 0.1' -- ./server)" 0
check "it says what is of what" grep -q "time: of the load" out
is "two launches" "$(column server.csv status '$c["kind"] == "timed"' | tr '\n' ' ')" "ok ok "
check "it was told to stop" test ! -e up
check "under the profiler too, where there is one" sh -c '[ "$1" = "ok ok " ] || grep -q "not known: .*perf" out' sh \
  "$(column server.csv status '$c["kind"] == "profiled"' | tr '\n' ' ')"
cat > beat.c <<'E'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    FILE *f = fopen("beat.pid", "w");
    fprintf(f, "%d\n", (int)getpid());
    for (fclose(f);; usleep(1000))
        free(malloc(100));
}
E
built beat.c -o beat
idle=$((100000 + $$)) # seconds, to be told from others
beats='kill -0 "$(cat beat.pid)"'
is "one that the signal ends: exit 0" "$(code quick --runs 1 --stop INT --ready "$beats" --load 'sleep 0.1' -- "$dir/beat")" 0
is "a load that fails: exit 1" "$(code quick --runs 1 --ready "$beats" --load 'echo why >&2; exit 4' -- "$dir/beat")" 1
check "it says so" sh -c 'grep -q "the load: exit status 4" out && grep -q "| why" out'
is "a server that ends: exit 1" "$(code quick --runs 1 --ready 'sleep 0.2; test -e ended' --load true -- sh -c ': > ended')" 1
check "it says so" grep -q "the server" out
is "a server without its environment: exit 3" "$(code quick --runs 1 --ready "$beats" --load 'sleep 0.1' -- env -i "$dir/beat")" 3
is "one that is never ready: exit 1" "$(code quick --runs 1 --timeout 1 --ready 'sleep 1000' --load true -- "$dir/beat")" 1
check "--timeout is for that too" grep -q "not ready after 1 s" out
: > up
refused "another server answers" 3 "before the server is started.*end that one" --no-profile --allocators tlfl --ready 'test -e up' --load true -- "$dir/beat"
rm up
: > launches
is "another one answers later: exit 1" \
  "$(code quick --runs 1 --ready 'echo >> launches; test "$(wc -l < launches)" -gt 1' --load 'sleep 0.1' -- "$dir/beat")" 1
check "it says so" grep -q "failed: tlfl, 1 launch: --ready succeeded before" out
# Of a process that has slept: one that has not is counted at the next tick only.
if [ "$(cut -d ' ' -f 1 /proc/$$/schedstat)" -gt 0 ]; then
  is "a load that drives something else: exit 1" \
    "$(code quick --runs 1 --ready "sleep 0.3; pgrep -fx '[^ ]*sleep $idle'" --load true -- sleep "$idle")" 1
  check "it says so" grep -q "took no CPU time at all under the load" out
else
  skip "a load that drives something else" "the kernel does not count CPU time by the nanosecond"
fi
is "nothing runs on" "$(pgrep -fx "[^ ]*sleep $idle|$dir/beat" | wc -l)" 0

# ---- an interruption ----

# begun ROUND: the comparison in the background has come that far, or has ended
begun() { while kill -0 $compare 2> /dev/null && ! grep -q "round $1/" err; do sleep 0.05; done; }
(trap '' HUP && exec "$build/bin/ak" compare --no-profile --allocators tlfl --runs 10000 --warmup 0 --csv stopped.csv -- ./work 1000) > out 2> err &
compare=$!
begun 3
kill -HUP $compare # ignored before ak began, as by nohup; INT is by the shell's & (a TERM ends it)
kill -INT $compare
at=$(sed -n 's|^ak: round \([0-9]*\)/.*|\1|p' err | tail -n 1)
begun $((at + 2))
check "what was ignored at the start stays ignored" kill -0 $compare
kill -TERM $compare
wait $compare
is "interrupted: exit 1" $? 1
check "what was measured is shown and written" sh -c 'grep -q "^stopped: " out && [ "$(wc -l < stopped.csv)" -gt 4 ]'
: > err
"$build/bin/ak" compare --no-profile --allocators tlfl --warmup 10000 -- ./work 1000 > out 2> err &
compare=$!
while kill -0 $compare 2> /dev/null && ! grep -q "warm-up 2/" err; do sleep 0.05; done
kill -TERM $compare
wait $compare
check "stopped before any round: no ratio of the default" grep -Eq '^glibc.* 0 +- +- +the default +- +- +- +- ' out
: > err
"$build/bin/ak" compare --no-profile --allocators tlfl --runs 100000 -- ./work 1000 > out 2> err &
compare=$!
begun 1
kill -KILL $compare
wait $compare 2> said
mkdir "tmp/ak-compare-$$-abcdef"
check "a killed comparison leaves its folder" sh -c 'ls -d tmp/ak-compare-"$1"-*' sh "$compare"
quick --runs 1 -- ./work 10 > out 2> err
is "the next one removes that, and none whose process lives" "$(ls tmp)" "ak-compare-$$-abcdef"
rmdir tmp/*
is "whole rows" "$(awk -F, '{ print (NF == 31) }' stopped.csv | sort -u)" 1
is "nothing was left by any of these" "$(ls tmp; ls -d "a b"/ak-compare* 2> /dev/null)" ""
finish
