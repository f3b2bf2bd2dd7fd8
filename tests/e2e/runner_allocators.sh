#!/bin/sh
# Which allocator served is proved or the row has no numbers: missing, unloadable, not a malloc, gone meanwhile. TAP.
set -u
# shellcheck source=tests/e2e/fixtures/runner_suite.sh
. "$(dirname "$0")/fixtures/runner_suite.sh"
cd "$dir" || exit 1
lib=$suite/build/lib

is "an optional allocator that is missing: exit 0" "$(code ak run plain --preset smoke --out plain)" 0
is "its rows are skipped, the others ok" "$(statuses plain)" "ok 6, skipped 2"
check "the reason is the loader's" grep -q 'absent is not installed: .*cannot open shared object file' plain/runs.csv
check "skipped rows have no numbers" no_numbers plain
is "meta.json says so too" "$(jq -r '.allocators[] | select(.name == "absent") | .found' plain/meta.json)" false
is "each row tells the object that served" "$(column plain/runs.csv allocator_path | grep -c libwrapper.so)" 2

is "missing, but named: exit 3" "$(code ak run plain --preset smoke --out named --allocators absent)" 3
check "one line" one_line "$dir/err"
check "nothing was run" test ! -e named/runs.csv
is "missing, but required: exit 3" "$(printf 'kernel = null\nallocators = glibc, needed\nnull.allocators = glibc, needed\n' > n.sweep; code ak run n.sweep --preset smoke --out needed)" 3
check "it says where that is written" grep -q 'registry.ini:' "$dir/err"
is "a library of one's own that is missing: exit 3" "$(code ak run plain --preset smoke --out own --allocators mine=./none.so)" 3
check "nothing was run for it" test ! -e own/runs.csv
echo "not a library" > text.so
is "a file that is no library: exit 3" "$(code ak run plain --preset smoke --out own --allocators mine=./text.so)" 3
check "why: not ELF" grep -q 'not a 64-bit ELF' "$dir/err"
# A library that needs a later C library than any: linked with a stub of one.
echo 'void later(void) {}' > stub.c
echo 'GLIBC_9.9 { global: later; };' > stub.map
echo 'void later(void); void now(void) { later(); }' > newer.c
"${CC:-gcc}" -shared -fPIC -nostdlib -Wl,-soname,libc.so.6 -Wl,--version-script=stub.map stub.c -o libstub.so &&
  "${CC:-gcc}" -shared -fPIC -nostdlib newer.c ./libstub.so -o newer.so || exit 3
is "a library for a later C library: exit 3" "$(code ak run plain --preset smoke --out own --allocators mine=./newer.so)" 3
check "why, in a few words" grep -q 'needs GLIBC_9.9, this system has [0-9.]*; nothing was run' "$dir/err"
printf '[newer]\nlibrary = newer.so\n[afar]\nlibrary = libafar.so.1\nget = make afar\n' > newer.ini
sed -i "s|= newer|= $dir/newer|" newer.ini
printf 'kernel = null\nallocators = newer, afar\nops = 100\nreps = 1\n' > newer.sweep
is "optional, it is skipped: exit 0" "$(code ak run newer.sweep --registry newer.ini --preset smoke --out newer)" 0
check "with the same reason" grep -q 'newer: needs GLIBC_9.9, this system has' newer/runs.csv
ak doctor --registry newer.ini > doctor.txt
check "doctor does not call it missing" sh -c 'grep -q "newer cannot be loaded" doctor.txt && ! grep -q "newer is not installed" doctor.txt'
check "doctor says how to get what is not here" sh -c 'grep -A 2 "afar is not installed" doctor.txt | grep "fix: make afar"'
head -c 2000 "$lib/libwrapper.so" > cut.so
is "a library that is cut off: exit 3" "$(code ak run plain --preset smoke --out own --allocators mine=./cut.so)" 3
cp "$lib/libwrapper.so" mine.so
is "a library of one's own: exit 0" "$(code ak run plain --preset smoke --out own --allocators mine=mine.so,glibc)" 0
is "a library of one's own: ok" "$(statuses own)" "ok 6"
is "its path is recorded" "$(column own/runs.csv allocator_path | grep -c "/mine.so$")" 2

is "a library that is no malloc: exit 1" "$(code ak run plain --preset smoke --out wrong --allocators bystander)" 1
is "a library that is no malloc: wrong_allocator" "$(statuses wrong | tr -d 0-9)" "wrong_allocator "
check "no numbers" no_numbers wrong
is "AK_LIBRARY_WRAPPER overrides: exit 0" "$(AK_LIBRARY_WRAPPER=$dir/mine.so code ak run plain --preset smoke --out over --allocators wrapper)" 0
is "AK_LIBRARY_WRAPPER overrides: its object served" "$(column over/runs.csv allocator_path | grep -c "/mine.so$")" 4
AK_LIBRARY_ABSENT=$dir/none.so
export AK_LIBRARY_ABSENT
is "an override that leads nowhere: exit 3" "$(code ak run plain --preset smoke --out over2)" 3
check "an override that leads nowhere: says which, in one line" sh -c 'grep -q none.so "$1" && [ "$(wc -l < "$1")" -eq 1 ]' sh "$dir/err"
check "an override that leads nowhere: nothing was run" test ! -e over2/runs.csv
unset AK_LIBRARY_ABSENT

# LD_PRELOAD knows no quoting: blanks and colons in the path must not matter
mkdir "a b:c"
cp mine.so "a b:c/libodd.so"
is "blanks and colons in a library's path: exit 0" "$(code ak run plain --preset smoke --out odd0 --allocators "odd=a b:c/libodd.so, glibc")" 0
is "blanks and colons in a library's path: it served" "$(column odd0/runs.csv allocator_path | grep -c 'a b:c/libodd.so')" 2
printf '[odd]\nlibrary = a b:c/libodd.so\n' > more.ini
is "the same by a registry of one's own: exit 0" "$(code ak run plain --preset smoke --out odd --registry more.ini --allocators odd)" 0
is "the same by a registry of one's own: it served" "$(column odd/runs.csv allocator_path | grep -c 'a b:c/libodd.so')" 4

mkdir "two  blanks"
cp mine.so "two  blanks/l.so"
is "two blanks in a row, a comma by AK_LIBRARY: exit 0" "$(mkdir a,b; cp mine.so a,b/l.so; AK_LIBRARY_ODD=$dir/a,b/l.so code ak run plain --preset smoke --out comma --registry more.ini --allocators odd)" 0
is "two blanks in a row in a library's path: exit 0" "$(code ak run plain --preset smoke --out blanks --allocators "odd=two  blanks/l.so")" 0
is "two blanks in a row in a library's path: ok" "$(statuses blanks)" "ok 4"
is "two blanks in a row in a library's path: ak verify: exit 0" "$(code ak verify blanks)" 0
is "a comma in a library's path on the command line: exit 2" "$(code ak run plain --preset smoke --out c2 --allocators odd=a,b/l.so)" 2
check "it says how to give it" grep -q AK_LIBRARY_ "$dir/err"
printf 'kernel = null\nallocators = glibc, absent\nnull.allocators = absent\n' > none.sweep
is "every row skipped: exit 0" "$(code ak run none.sweep --preset smoke --out none)" 0
check "every row skipped: says that nothing was measured" grep -q '^nothing was measured: .*absent is not installed' "$dir/out"
is "every row skipped: one line for its reason, with the number of rows" \
  "$(sed -n 's/^  \([0-9]*\) skipped: absent is not installed: .*/\1/p' "$dir/out")" "$(column none/runs.csv status | grep -c skipped)"
is "every row skipped of what the command line asked for: exit 3" "$(code ak run none.sweep --preset smoke --threads 2 --out none2)" 3
is "its rows stay" "$(statuses none2)" "$(statuses none)"
is "ak verify accepts it: exit 0" "$(code ak verify none2)" 0

# LD_PRELOAD of the user's own does not reach the kernels, allocator tuning does
is "a user's LD_PRELOAD is not passed on: exit 0" "$(LD_PRELOAD=$lib/libwrapper.so MALLOC_ARENA_MAX=1 code ak run plain --preset smoke --out env --allocators glibc)" 0
is "a user's LD_PRELOAD is not passed on: libc served" "$(statuses env)" "ok 4"
is "tuning variables are recorded" "$(jq -r '.environment[]' env/meta.json)" "MALLOC_ARENA_MAX=1"

# a library that goes away in the middle
printf 'kernel = misbehave\nallocators = glibc, wrapper\nact = slow\nreps = 20\n' > slow.sweep
"$ak" run slow.sweep --preset smoke --out gone > out.txt 2>&1 &
pid=$!
some() { [ "$(wc -l < gone/runs.csv)" -gt 5 ]; }
check "the run goes on" wait_until 20 some
mv "$lib/libwrapper.so" "$lib/renamed.so"
wait $pid
gone_code=$?
mv "$lib/renamed.so" "$lib/libwrapper.so"
is "a library renamed away meanwhile: every row is there" "$(column gone/runs.csv status | wc -l)" 40
check "a library renamed away meanwhile: some ok, some skipped" sh -c 'grep -q ",wrapper,.*,ok," gone/runs.csv && grep -q ",wrapper,.*,skipped," gone/runs.csv'
check "a library renamed away meanwhile: glibc's rows are all ok" sh -c '[ "$(grep -c ",glibc,.*,ok," gone/runs.csv)" -eq 20 ]'
# Between the look for the file and the start of the process it can vanish too: then a row was launched and not served.
late=$(column gone/runs.csv status | grep -c wrong_allocator)
is "a library renamed away meanwhile: exit 0, or 1 for a row that was under way" $gone_code $((late > 0))
check "no numbers in the rows that are not ok" no_numbers gone
is "ak verify accepts the folder: exit 0" "$(code ak verify gone)" 0
finish
