#!/bin/sh
# ak's command line and files: what is refused, with which exit code, in one line; what help and lists say. Prints TAP.
set -u
# shellcheck source=tests/e2e/fixtures/runner_suite.sh
. "$(dirname "$0")/fixtures/runner_suite.sh"
cd "$dir" || exit 1

refused() { # refused WHAT CODE PATTERN COMMAND...
  what=$1 want=$2 pattern=$3
  shift 3
  is "$what: exit $want" "$(code "$@")" "$want"
  check "$what: says why in one line" sh -c 'grep -q -- "$1" "$2" && [ "$(wc -l < "$2")" -eq 1 ]' sh "$pattern" "$dir/err"
}

is "no arguments: exit 2" "$(code ak)" 2
is "help: exit 0" "$(code ak help)" 0
check "help names every command" sh -c 'for c in run list doctor verify export merge; do grep -q "^  $c " "$1" || exit 1; done' sh "$dir/out"
is "run --help: exit 0" "$(code ak run --help)" 0
check "run --help names --resume" grep -q -- --resume "$dir/out"
is "--version: exit 0" "$(code ak --version)" 0
refused "unknown command" 2 "did you mean 'run'" ak rum
refused "run without a sweep" 2 "no sweep" ak run
refused "two sweeps" 2 "more than one" ak run plain plain
refused "unknown option" 2 "did you mean '--resume'" ak run plain --resum
refused "option without value" 2 "needs a value" ak run plain --out
refused "option twice" 2 "twice" ak run plain --out a --out b
refused "unknown sweep" 2 "did you mean 'plain'" ak run plian
refused "missing sweep file" 2 "no such file" ak run ./none.sweep
refused "a folder as sweep" 2 "is a folder" ak run "$dir/"
refused "unknown preset" 2 "did you mean 'quick'" ak run plain --preset qick
refused "unknown allocator" 2 "did you mean 'wrapper'" ak run plain --allocators wraper
refused "threads that are none" 2 "whole number" ak run plain --threads 1,x
refused "threads out of range" 2 "1 to 4096" ak run plain --threads 5000
refused "no threads at all" 2 "at least one value" ak run plain --threads ,
refused "reps that are none" 2 "whole number" ak run plain --reps -1
refused "unknown counters" 2 "pappi" ak run plain --counters pappi
refused "a registry that is missing" 2 "No such file" ak run plain --registry none.ini
refused "a bad name for a library" 2 "NAME=LIBRARY" ak run plain --allocators =x.so
printf 'kernel = misbehave\nallocators = glibc\nthreds = 1\n' > bad.sweep
refused "a bad key, with file and line" 2 "bad.sweep:3: unknown key 'threds' (did you mean 'threads'?)" ak run bad.sweep
printf 'kernel = misbehaf\nallocators = glibc\n' > bad.sweep
refused "a bad kernel" 2 "bad.sweep:1: .*did you mean 'misbehave'" ak run bad.sweep
printf 'kernel = misbehave\nallocators = glibc\nact = crahs\n' > bad.sweep
refused "a bad word" 2 "bad.sweep:3: .*did you mean 'crash'" ak run bad.sweep
printf 'kernel = misbehave\nkernel = null\n' > bad.sweep
refused "a key twice" 2 "bad.sweep:2: 'kernel' again" ak run bad.sweep
head -c 300000 /dev/zero | tr '\0' x > bad.sweep
refused "one endless line" 2 "bad.sweep:1: a line of 300000 bytes" ak run bad.sweep
head -c 3000 /dev/urandom > bad.sweep
is "random bytes: exit 2" "$(code ak run bad.sweep)" 2
: > bad.sweep
refused "an empty file" 2 "bad.sweep: no 'kernel'" ak run bad.sweep
cp "$suite/experiments/plain.sweep" "$(printf 'caf\351.sweep')"
refused "a sweep's name that is not UTF-8" 2 "not UTF-8" ak run "./$(printf 'caf\351.sweep')"
printf '[mine]\nlibrary = x.so\nkernels = null, misbehaf\n' > more.ini
refused "a kernel that the registry alone knows" 2 "more.ini:3: unknown kernel 'misbehaf' (did you mean 'misbehave'" ak run plain --registry more.ini
printf '[mine]\nlibrary = x.so\nmetadata = stat:\n' > more.ini
refused "a metadata call without a symbol" 2 "more.ini:3: metadata = 'stat:'" ak run plain --registry more.ini
refused "verify without a folder" 2 "expected one results folder" ak verify
refused "verify of what is none" 2 "meta.json" ak verify "$dir"
refused "list of what is none" 2 "did you mean 'kernels'" ak list kernel
# what does not go together only the kernel knows: it is asked before anything runs
real=$build/bin/ak
cell() { # cell LINE...: a sweep of these
  printf '%s\n' 'allocators = glibc' "$@" > cell.sweep
}
cell 'kernel = realloc_grow' 'start = 16, 64K' 'end = 1K, 2K'
refused "a start above an end" 2 "cell.sweep:3: realloc_grow: .*(start = 65536, end = 1024)" "$real" run cell.sweep --dry-run
refused "the same without a dry run" 2 "cell.sweep:3: realloc_grow: " "$real" run cell.sweep
cell 'kernel = fragment, churn' 'fragment.blocks = 7'
refused "a parameter of one kernel of two" 2 "cell.sweep:3: fragment: .*odd" "$real" run cell.sweep --dry-run
cell 'kernel = churn' 'size = 4, 16'
refused "a size below what a kernel writes" 2 "cell.sweep:3: churn: .*size_min = 4" "$real" run cell.sweep --dry-run
cell 'kernel = fastpath' 'size_max = 64'
refused "a range for a kernel of one size" 2 "cell.sweep:3: fastpath: takes one size" "$real" run cell.sweep --dry-run
cell 'kernel = realloc_grow' 'size_max = 64'
refused "a size for a kernel of none" 2 "cell.sweep:3: 'size_max', but no kernel" "$real" run cell.sweep --dry-run
cell 'kernel = churn' 'size_dist = file:weights'
echo '16 heavy' > weights
refused "a table of sizes with a slip" 2 "weights:1: expected 'size weight'" "$real" run cell.sweep --dry-run
cell 'kernel = thread_churn' 'counters = perf'
refused "counters of threads that a kernel makes" 2 "cell.sweep:3: thread_churn: --counters perf: " "$real" run cell.sweep --dry-run
cell 'kernel = c2c' 'placement = none'
refused "threads without a CPU where each needs one" 2 "cell.sweep:3: c2c: --placement none" "$real" run cell.sweep --dry-run
refused "on the command line it is the option" 2 "ak: --counters: bleed: " "$real" run bleed --counters perf --dry-run
cell 'kernel = remote_free' 'threads = 1, 2'
is "too few threads of some: a skip, not an end" "$(code "$real" run cell.sweep --dry-run)" 0
check "nothing was made on the way" sh -c '! ls -d results 2>/dev/null'

is "list: exit 0" "$(code ak list)" 0
check "list tells that a library is missing" grep -q 'absent.*cannot be used' "$dir/out"
check "list --json is JSON with every kind" sh -c '"$1" list --json | jq -e ".kernels and .allocators and .sweeps and .counters" >/dev/null' sh "$suite/build/bin/ak"
is "list kernels --json: names" "$(ak list kernels --json | jq -r '.[].name' | tr '\n' ' ')" "misbehave null "
is "doctor: exit 0" "$(code ak doctor)" 0
check "doctor names a missing allocator and the fix" sh -c 'grep -A2 "absent is not installed" "$1" | grep -q fix:' sh "$dir/out"
check "doctor --json has findings" sh -c '"$1" doctor --json | jq -e ".findings | length > 10" >/dev/null' sh "$suite/build/bin/ak"

# a build folder that is not below the source tree
mkdir -p "$dir/apart"
cp -r "$suite/build" "$dir/apart/build"
is "no source tree above: exit 3" "$(code "$dir/apart/build/bin/ak" list)" 3
echo "$suite" > "$dir/apart/build/root"
is "its path recorded by the build: exit 0" "$(code "$dir/apart/build/bin/ak" list)" 0

# it works from anywhere, and the dry run runs nothing
mkdir -p elsewhere/deep
cd elsewhere/deep || exit 1
is "dry run from another folder: exit 0" "$(code ak run plain --preset smoke --dry-run)" 0
is "dry run prints every launch" "$(grep -c 'rep=1' "$dir/out")" 8
check "dry run gives an estimate" grep -q 'roughly' "$dir/out"
check "dry run leaves nothing" sh -c '[ -z "$(ls)" ]'
cp "$suite/experiments/plain.sweep" ../mine.sweep
is "a sweep by relative path: exit 0" "$(code ak run ../mine.sweep --preset smoke --out ../out)" 0
check "relative --out is relative to here" test -f ../out/runs.csv
is "its name is the file's" "$(column ../out/runs.csv sweep | sort -u)" mine
is "default folder: exit 0" "$(code ak run plain --preset smoke --allocators glibc --threads 1)" 0
check "default folder is results/SWEEP-PRESET-TIME here" sh -c 'ls -d results/plain-smoke-2*Z >/dev/null'
finish
