#!/bin/sh
# What a call executed, by the simulated machine and ak disasm: counts known by hand, counts that callgrind has of the same
# calls, what is published of mimalloc, and what is refused. Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
ak=$build/bin/ak
OPS=20480 # of callgrind's loop: rare paths are as rare in both

code() {
  "$@" > "$dir/out" 2> "$dir/err"
  echo $?
}
refused() { # refused WHAT CODE PATTERN COMMAND...
  what=$1 want=$2 pattern=$3
  shift 3
  is "$what: exit $want" "$(code "$@")" "$want"
  check "$what: says why in one line" sh -c 'grep -q -- "$1" "$2" && [ "$(wc -l < "$2")" -eq 1 ]' sh "$pattern" "$dir/err"
}
field() { jq -r ".$2" "$dir/$1.json"; } # field NAME KEY

# ---- what is refused, and what needs more than is here ----
refused "no allocator" 2 "expected one ALLOCATOR" "$ak" disasm
refused "an unknown allocator" 2 "did you mean 'mimalloc'" "$ak" disasm mimaloc
refused "an unknown op" 2 "did you mean 'free'" "$ak" disasm glibc --op fre
refused "no size" 2 "whole number" "$ak" disasm glibc --size x
refused "two sizes" 2 "expected one size" "$ak" disasm glibc --size 16,64
refused "a size that QEMU cannot map in time" 2 "expected at most 64M" "$ak" disasm glibc --size 1G
refused "an unknown heap state" 2 "one of empty, one, warm" "$ak" disasm glibc --heap-state cold
refused "no qemu" 3 "apt install qemu-user" env PATH=/nonexistent "$ak" disasm glibc
"$ak" list counters --json | jq -j '.[] | select(.name == "sim") | if .can then "" else .trouble end' > "$dir/trouble"
if [ -s "$dir/trouble" ]; then
  skip "what calls execute" "$(cat "$dir/trouble")"
  finish
fi
mkdir "$dir/bin"
ln -s "$(command -v qemu-x86_64)" "$dir/bin/"
refused "no objdump" 3 "apt install binutils" env PATH="$dir/bin" "$ak" disasm glibc
refused "a library that is not there" 3 "no such file" "$ak" disasm mine=/nonexistent/lib.so

# ---- known by hand ----
if ${CC:-cc} -O1 -shared -fPIC -fno-builtin -Wl,--build-id "$root/tests/e2e/fixtures/counted_malloc.c" -o "$dir/counted.so" 2> "$dir/said"; then
  counts='[.instructions, .loads, .stores, .atomics, .thread_locals, .branches, .lines, .stack_lines, .code_lines] | @text'
  is "malloc in assembly" "$(code "$ak" disasm "counted=$dir/counted.so" --json)" 0
  cp "$dir/out" "$dir/counted.json"
  is "malloc: what it executes" "$(jq -r "$counts" "$dir/counted.json")" "[13,4,2,2,1,2,4,1,1]"
  is "malloc: every call the same" "$(jq -r '[.paths, .fast_ratio] | @text' "$dir/counted.json")" "[1,1]"
  jq -r '.path[] | "\(.text)|\(if .load then "l" else "" end)\(if .store then "s" else "" end)\(if .atomic then "a" else "" end)\(if .thread_local then "t" else "" end)\(if .branch then "b" else "" end)"' \
    "$dir/counted.json" | sed 's/0x[0-9a-f]*(%rip)/(%rip)/; s/jmp .*|/jmp|/' > "$dir/have"
  cat > "$dir/want" <<'END'
lea 0xf(%rdi),%rax|
and $0xfffffffffffffff0,%rax|
lock xadd %rax,(%rip)|a
lea (%rip),%rdx|
add %rdx,%rax|
push %rbx|s
mov %fs:0x0,%rdx|lt
xchg %rdx,(%rip)|a
xchg %rdx,%rcx|
incq (%rip)|ls
pop %rbx|l
jmp|b
ret|lb
END
  check "malloc: each instruction, and what it does" diff "$dir/want" "$dir/have"
  is "malloc: all of it is of that library" "$(jq -r '[.path[] | .object, .function] | unique | @text' "$dir/counted.json")" \
    "[\"$dir/counted.so\",\"malloc\"]"
  is "free in assembly" "$(code "$ak" disasm "counted=$dir/counted.so" --op free)" 0
  check "free: three of four calls took the short path" grep -q '^750 of 1000 calls took this path, 2 different' "$dir/out"
  check "free: what it executes" grep -q '4 instructions, 3 loads, 1 store, 0 atomic, 0 TLS' "$dir/out"
  is "free: four lines" "$(grep -c '^  ' "$dir/out")" 4
else
  skip "counts known by hand" "the fixture does not compile here"
fi

# ---- by callgrind: tlfl less the floor, so that loop and PLT are gone ----
# simulated NAME SIZE: instructions of malloc and free, means over all calls
simulated() {
  column() { awk -F , -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $(at[name]) }' "$dir/run/runs.csv"; }
  column row_id > "$dir/ids"
  column allocator | paste -d ' ' "$dir/ids" - > "$dir/names"
  column size_min | paste -d ' ' "$dir/names" - > "$dir/rows"
  awk -F '[ ,]' -v name="$1" -v size="$2" '
    FNR == NR { if ($2 == name && $3 == size) want[$1]; next }
    $1 in want && $2 ~ /_mean_instructions$/ { sum += $4 }
    END { printf "%.3f", sum }' "$dir/rows" "$dir/run/metrics.csv"
}
counted() { # counted NAME SIZE: instructions of a pair in callgrind's loop
  rm -rf "$dir/counts"
  mkdir "$dir/counts"
  LD_PRELOAD="$build/lib/lib$1.so" valgrind --tool=callgrind --combine-dumps=yes \
    --callgrind-out-file="$dir/counts/%p" "$build/bench/loops" $OPS "pair:$2:300" > "$dir/said" 2>&1
  cat "$dir"/counts/* | awk -v ops=$OPS '
    /^desc: Trigger: Client Request: mark/ { mark = $7; seen = 1; next }
    /^desc: Trigger/ { seen = 0 }
    /^totals:/ && seen { total[mark] = $2; seen = 0 }
    END { printf "%.3f", (total[2] - total[1]) / ops }'
}
# A path of hundreds of instructions that one call in thousands takes may come once more in one of the two.
same_pairs() { awk '{ d = ($1 - $2) - ($3 - $4); exit !($1 > $2 && d < 0.1 && d > -0.1) }' "$dir/pairs"; }
printf '%s\n' 'kernel = anatomy' 'allocators = tlfl, bump' 'counters = sim' 'passes = throughput' 'size = 16, 4K' "ops = $OPS" \
  'reps = 1' > "$dir/pairs.sweep"
check "a sweep of marked calls" "$ak" run "$dir/pairs.sweep" --out "$dir/run"
check "its folder is in order" "$ak" verify "$dir/run"
if ! command -v valgrind > /dev/null || [ ! -e /usr/include/valgrind/callgrind.h ]; then
  skip "instructions by callgrind" "valgrind is not installed"
else
  make --no-print-directory -C "$root" BUILD="$BUILD" "$BUILD/bench/loops" > "$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
  for size in 16 4096; do
    echo "$(simulated tlfl $size) $(simulated bump $size) $(counted tlfl $size) $(counted bump $size)" > "$dir/pairs"
    check "tlfl beyond the floor, $size B: instructions a pair as callgrind counts them" same_pairs
    sed 's/^/# simulated tlfl, bump; callgrind tlfl, bump: /' "$dir/pairs"
  done
fi

# ---- published of mimalloc; tlfl beside it ----
for name in mimalloc tlfl; do
  if [ "$("$ak" list allocators --json | jq -r ".[] | select(.name == \"$name\") | .found")" != true ]; then
    skip "$name: the fast path" "not installed"
    continue
  fi
  is "$name: disasm" "$(code "$ak" disasm $name --json)" 0
  cp "$dir/out" "$dir/$name.json"
  is "$name: no atomic instruction in a hot malloc" "$(field $name atomics)" 0
  is "$name: as many lines as instructions" "$(field $name 'path | length')" "$(field $name instructions)"
  is "$name: loads, stores and branches add up" \
    "$(field $name 'path | [map(select(.load)), map(select(.store)), map(select(.branch))] | map(length) | @text')" \
    "$(jq -r '[.loads, .stores, .branches] | @text' "$dir/$name.json")"
  check "$name: every line is in words" sh -c '! jq -r ".path[].text" "$1" | grep -qx ""' sh "$dir/$name.json"
  check "$name: most calls took the path" jq -e '.fast_ratio > 0.9' "$dir/$name.json"
done
"$ak" disasm tlfl --json > "$dir/again.json" 2> "$dir/said"
check "the same again" cmp "$dir/tlfl.json" "$dir/again.json"
finish
