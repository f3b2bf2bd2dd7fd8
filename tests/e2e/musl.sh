#!/bin/sh
# Static programs of musl: what is fetched is checked and never half taken; a row proves which malloc its program holds; what
# cannot be proved or built is skipped with its reason. The sources are of a small repository in a folder. TAP.
# shellcheck disable=SC2317 # functions that check calls by name are not unreachable
set -u
. "$(dirname "$0")/fixtures/tap.sh"
cd "$dir" || exit 1

# An allocator of a few lines, never freeing.
cat > mine.c << 'C'
#include <stddef.h>
#include <string.h>
#pragma GCC visibility push(default)
int mi_version(void);
int mi_version(void) { return 209; }
static _Alignas(16) char pool[256 << 20];
static size_t top;
void *malloc(size_t n)
{
    size_t take = (n + 31) / 16 * 16, at = __atomic_fetch_add(&top, take, __ATOMIC_RELAXED);
    if (at + take > sizeof pool) return NULL;
    *(size_t *)(pool + at) = n;
    return pool + at + 16;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n)
{
    void *q = malloc(n);
    if (p && q) memcpy(q, p, ((size_t *)p)[-2] < n ? ((size_t *)p)[-2] : n);
    return q;
}
void *aligned_alloc(size_t a, size_t n) { return malloc(a + n); }
size_t malloc_usable_size(void *p) { return ((size_t *)p)[-2]; }
C

# ---- sources -------------------------------------------------------------------------------
# package VERSION: mimalloc's source, made of the file above, in a repository of its own
package() {
  rm -rf repo "mimalloc-$1" && mkdir -p repo/pool repo/dists/bookworm/main/source "mimalloc-$1/src" "mimalloc-$1/debian/source"
  cp mine.c "mimalloc-$1/src/static.c"
  echo '3.0 (native)' > "mimalloc-$1/debian/source/format"
  printf 'mimalloc (%s) bookworm; urgency=low\n\n  * Test.\n\n -- nobody <nobody@example.org>  Mon, 02 Jan 2023 00:00:00 +0000\n' \
    "$1+t" > "mimalloc-$1/debian/changelog"
  printf 'Source: mimalloc\nMaintainer: nobody <nobody@example.org>\nStandards-Version: 4.6.0\n\nPackage: mimalloc\nArchitecture: any\nDescription: a test\n' \
    > "mimalloc-$1/debian/control"
  dpkg-source -b "mimalloc-$1" > said 2>&1 || return 1
  mv mimalloc_* repo/pool/
  {
    sed -e 's/^Source:/Package:/' "repo/pool/mimalloc_$1+t.dsc"
    echo 'Directory: pool'
  } | awk -v dsc="$(sha256sum "repo/pool/mimalloc_$1+t.dsc" | cut -d ' ' -f 1) $(wc -c < "repo/pool/mimalloc_$1+t.dsc") mimalloc_$1+t.dsc" \
    '/^(Checksums-Sha1|Files):/ { skip = 1; next } /^[^ ]/ { skip = 0 } skip { next } { print } /^Checksums-Sha256:/ { print " " dsc }' \
    > repo/dists/bookworm/main/source/Sources
  index=main/source/Sources
  printf 'Suite: bookworm\nCodename: bookworm\nComponents: main\nSHA256:\n %s %s %s\n' \
    "$(sha256sum repo/dists/bookworm/$index | cut -d ' ' -f 1)" "$(wc -c < repo/dists/bookworm/$index)" $index > repo/dists/bookworm/Release
}
own=$dir/build
# secure [MIRROR]: make mimalloc-secure into a folder of its own; its status is in $code
secure() { BUILD=$own MUSL_MIRROR=${1:-file:$dir/repo} "$root/experiments/musl.sh" secure > said 2>&1; }
code() { "$@" > said 2>&1 && echo 0 || echo $?; }
library=$own/lib/libmimalloc-secure.so

if lacks apt-get dpkg-source gcc; then
  skip "sources of packages" "$lacking"
else
  is "no repository: exit 3" "$(code secure file:/nowhere/at/all)" 3
  is "in one line" "$(wc -l < said)" 1
  package 2.0.8 || exit 1
  is "another version than the published one's: exit 3" "$(code secure)" 3
  check "it says which" grep -q 'mimalloc 2.0.8+t, expected 2.0.9' said
  package 2.0.9 || exit 1
  find repo/pool -name '*.tar.*' -exec sh -c 'cp "$1" kept && printf x >> "$1"' - {} \;
  is "an archive that is not what the list says: exit 3" "$(code secure)" 3
  check "nothing of it is kept" sh -c "! ls '$own/musl/source' | grep -v new && test ! -e '$library'"
  find repo/pool -name '*.tar.*' -exec cp kept {} \;
  is "the right one: built" "$(code secure)" 0
  check "as a library that has malloc" sh -c "nm -D '$library' | grep -q ' T malloc\$'"
  rm -rf repo
  is "there already: nothing is fetched" "$(code secure)" 0
  rm "$library"
  is "the library is gone: built from what was fetched" "$(code secure)$(test -e "$library" && echo there)" 0there
fi
is "a wrong word: exit 2" "$(code "$root/experiments/musl.sh" everything)" 2

# ---- archives ------------------------------------------------------------------------------
skip_without "static programs" musl-gcc make jq
musl-gcc -O1 -c mine.c -o mine.o && ar rcs mine.a mine.o || exit 1
musl-gcc -O1 -c "$root/experiments/musl/marks.c" -o marks.o || exit 1
join() { code "$root/experiments/musl/join.sh" "$1" marks.o "$2"; }
echo 'int malloc; int free; int calloc;' > part.c && musl-gcc -fno-builtin -c part.c -o part.o && ar rcs part.a part.o
is "an archive without realloc: exit 2" "$(join part.a part.joined)" 2
check "it says so" grep -q 'does not define realloc' said
check "and makes nothing" test ! -e part.joined
is "no archive: exit 2" "$(join none.a none.joined)" 2
is "an allocator's: joined" "$(join mine.a mine.joined)" 0

if [ ! -f "$build/musl/lib/libhwloc.a" ] || [ ! -f "$build/musl/lib/libjansson.a" ]; then
  skip "programs" "no libraries for musl: make musl-allocators builds them"
  finish
fi

# ---- programs ------------------------------------------------------------------------------
# A folder of its own, with what is compiled already.
own=$dir/musl
mkdir "$own" && cp -a "$build/musl/lib" "$build/musl/include" "$own/"
[ ! -d "$build/musl/obj" ] || cp -a "$build/musl/obj" "$own/"
programs() { make -C "$root" BUILD="$build" MUSL="$own" MUSL_ALLOCATORS="mine=$dir/mine.a" "$@" > said 2>&1; }
check "programs with tlfl, with an archive of the user's, with musl's own" \
  programs "$own/kernels/musl/null" "$own/kernels/musl/churn" "$own/kernels/mine/null" "$own/kernels/mine/churn" "$own/kernels/musl-tlfl/churn" \
  "$own/kernels/musl-tlfl/null"

# A registry for them.
cat > own.ini << INI
[musl]
linked = $own/kernels/musl
library =
version = text:__libc_version
[musl-tlfl]
linked = $own/kernels/musl-tlfl
library = musl-tlfl.a
version = string:tlfl_version
INI
printf 'kernel = churn, fragment\nallocators = glibc, musl, musl-tlfl\nops = 2000\nreps = 1\nthreads = 1, 2\nfragment.threads = 1\n' > own.sweep
ak() { "$build/bin/ak" "$@"; }
run() {
  out=$1
  shift
  ak run own.sweep --registry own.ini --preset smoke --out "$out" --allocators "glibc,musl,musl-tlfl,mine=$own/kernels/mine" "$@" > said 2>&1
}
# rows FOLDER FILTER: of runs.csv as JSON
rows() { ak export "$1" --tidy wide --force --out "$1.csv" > /dev/null 2>&1 && jq -R -s -c -r "split(\"\n\") | map(select(. != \"\") | split(\",\")) | .[0] as \$head | .[1:][] |
  [[\$head, .] | transpose[] | {(.[0] // \"\"): .[1]}] | add | $2" "$1.csv"; }
check "a sweep of them" run one
check "verified" ak verify one
is "each program served its rows" "$(rows one 'select(.kernel == "churn") | .allocator_path' | sort -u | grep -c "^$own/kernels/[a-z-]*/churn\$")" 3
is "each allocator tells its version" "$(rows one 'select(.kernel == "churn" and .allocator == "musl-tlfl") | .allocator_version' | sort -u)" \
  "$(LD_PRELOAD=$build/lib/libtlfl.so "$build/kernels/null" --probe --json --version-call string:tlfl_version | jq -r .allocator_version)"
check "a kernel that is not built: skipped, with the reason" sh -c "grep -c 'skipped,fragment is not built as a static program with m' one/runs.csv | grep -qx 3"
check "no counters, and why" grep -q 'a static program can load no counters' one/runs.csv
is "what the allocator adds to the program" "$(awk -F, '$2 == "binary_added_kb" && $4 != ""' one/metrics.csv | wc -l)" 4
is "nothing to musl's own, with the reason" "$(awk -F, '$2 == "binary_added_kb" && $4 == "" && $5 != ""' one/metrics.csv | wc -l)" 2
check "goes on with the same programs" run one --resume
is "counters that a program would have to load: skipped" "$(run two --counters perf; grep -c 'skipped,.*can load no counters' two/runs.csv)" "$(grep -c skipped two/runs.csv)"

probe() { "$own/kernels/$1/churn" --probe --expect "$2" > said 2>&1; }
check "with tlfl linked in, tlfl serves" probe musl-tlfl "$own/kernels/musl-tlfl/churn"
check "it is not the C library" sh -c "! '$own/kernels/musl-tlfl/churn' --probe --expect libc"
check "musl's own is not an allocator that was linked in" sh -c "! '$own/kernels/musl/churn' --probe --expect '$own/kernels/musl/churn'"

# Programs that are not what their folder says.
cp "$own/kernels/mine/churn" kept
cp "$own/kernels/musl/churn" "$own/kernels/mine/churn"
is "another program than the run began with: exit 2" "$(code run one --resume)" 2
run three
check "a program of musl's own malloc in an allocator's folder: skipped" grep -q 'mine.*skipped,.*no allocator is linked into it' three/runs.csv
strip -o "$own/kernels/mine/churn" kept
run four
check "a stripped program proves nothing" grep -q 'mine.*skipped,.*no allocator is linked into it\|mine.*skipped,.*stripped' four/runs.csv
check "by itself it says so" sh -c "! '$own/kernels/mine/churn' --probe --expect '$own/kernels/mine/churn'"
is "a folder without programs, named: exit 3" "$(mkdir -p empty; code ak run own.sweep --registry own.ini --preset smoke --out five --allocators "none=$dir/empty")" 3
is "ak compare cannot preload it: exit 2" "$(code ak compare --allocators musl-tlfl -- true)" 2
finish
