#!/bin/sh
# Real programs under an allocator: each runs twice, without and with the library preloaded, and must
# print the same. TAP on stdout. usage: programs.sh LIBRARY
# A program that is not installed is skipped.
set -u

if [ $# -ne 1 ]; then
  echo "usage: programs.sh LIBRARY" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
case $1 in
  /*) library=$1 ;;
  */*) library=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
  *) library=$1 ;; # a soname: the loader finds it
esac
case $library in
  /*)
    if [ ! -f "$library" ]; then
      echo "programs.sh: $library: no such file" >&2
      exit 2
    fi
    ;;
esac
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
count=0
failed=0

# compare NAME PROGRAM COMMAND: runs COMMAND (sh, in $work) plain and preloaded.
compare() {
  count=$((count + 1))
  if ! command -v "$2" >/dev/null 2>&1; then
    echo "ok $count - $1 # SKIP no $2"
    return
  fi
  (cd "$work" && sh -c "$3") >"$work/plain.out" 2>"$work/plain.err"
  plain=$?
  (cd "$work" && LD_PRELOAD=$library timeout 60 sh -c "$3") >"$work/loaded.out" 2>"$work/loaded.err"
  loaded=$?
  if [ "$plain" -ne 0 ]; then
    echo "ok $count - $1 # SKIP fails without the library too (status $plain)"
  elif [ "$loaded" -eq 0 ] && cmp -s "$work/plain.out" "$work/loaded.out" &&
    cmp -s "$work/plain.err" "$work/loaded.err"; then
    echo "ok $count - $1"
  else
    failed=$((failed + 1))
    echo "not ok $count - $1"
    echo "# status $loaded preloaded, $plain plain"
    head -n 5 "$work/loaded.err" | sed 's/^/# /'
  fi
}

# A copy, so that both runs read the same files whatever happens to the tree meanwhile.
mkdir "$work/tree" && cp -R "$root/allocators" "$root/tests/conformance" "$root/Makefile" "$root/config.mk" "$work/tree" || exit 3

# Whether the library is loaded at all: the loader only warns when it cannot.
count=1
name=$(basename "$library")
if LD_PRELOAD=$library grep -q "${name%%.so*}" /proc/self/maps 2>/dev/null; then
  echo "ok 1 - the library is loaded"
else
  echo "not ok 1 - the library is loaded"
  failed=1
fi

awk 'BEGIN { x = 12345; for (i = 0; i < 300000; i++) { x = (x * 1103515245 + 12345) % 2147483648; print x, i % 977, "line" } }' \
  >"$work/lines"

cat >"$work/t.py" <<'PY'
import hashlib, json, re, threading
words = {}
for line in open("lines"):
    a, b, c = line.split()
    words.setdefault(b, []).append(int(a))
text = json.dumps(words, sort_keys=True)
assert json.loads(text) == words
out = [None] * 4
def work(k):
    s = "".join(str(i * k) for i in range(20000))
    out[k] = hashlib.sha256(re.sub("7", "x" * (k + 1), s).encode()).hexdigest()
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
big = bytearray()
for i in range(200000):
    big += b"0123456789"
print(hashlib.sha256(text.encode()).hexdigest(), out, len(big))
PY

cat >"$work/t.pl" <<'PL'
use strict;
my (%h, @a);
open(my $f, "<", "lines") or die;
while (<$f>) { my @w = split; push @{$h{$w[1]}}, $w[0]; push @a, scalar reverse $_ if $. % 7 == 0; }
my $n = 0;
for my $k (sort { $a <=> $b } keys %h) { $n = ($n * 31 + @{$h{$k}} + $h{$k}[0]) % 1000003; }
my $s = join("", sort @a);
$s =~ s/enil/./g;
print "$n ", length($s), "\n";
PL

compare "python3: json, re, hashlib, threads" python3 "python3 -I -S t.py"
compare "perl: hashes, sort, substitution" perl "perl t.pl"
compare "gcc: compiles a file of this project" gcc \
  "gcc -std=gnu11 -O2 -D_GNU_SOURCE -Itree/allocators/tlfl -S -o - tree/allocators/tlfl/pool.c"
compare "g++: operator new, containers, exceptions" g++ "
cat >t.cc <<'CC'
#include <cstdio>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>
struct alignas(128) Wide { char bytes[128]; };
int main() {
  std::map<std::string, std::vector<int>> m;
  for (int i = 0; i < 50000; i++) m[std::to_string(i % 999)].push_back(i);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; k++) threads.emplace_back([k] { std::vector<std::string> v; for (int i = 0; i < 20000; i++) v.emplace_back(i % 300, 'a' + k); });
  for (auto &t : threads) t.join();
  bool thrown = false;
  try { volatile size_t n = size_t(1) << 62; delete[] new char[n]; } catch (const std::bad_alloc &) { thrown = true; }
  Wide *w = new Wide[10];
  bool aligned = reinterpret_cast<size_t>(w) % 128 == 0;
  delete[] w;
  std::printf(\"%zu %d %d\n\", m.size(), thrown, aligned);
}
CC
g++ -std=c++17 -O1 t.cc -o t.cc.out -lpthread && ./t.cc.out"
compare "sort: 300,000 lines, parallel" sort "LC_ALL=C sort --parallel=4 -S 8M -k2,2n -k1,1n lines"
compare "awk: associative arrays" awk "awk '{ n[\$2] += \$1 } END { for (k in n) print k, n[k] }' lines | LC_ALL=C sort"
compare "xz: compress and expand" xz "xz -1 -T2 -c lines | xz -dc | cksum"
compare "tar and gzip" tar "tar -C tree --sort=name --mtime=@0 --owner=0 --group=0 -czf - conformance | tar -tzf -"
compare "git: init, add, commit, log, status, gc" git "
export HOME=\$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@0 +0000'
rm -rf r && git init -q r && cd r && git config user.email t@example.invalid && git config user.name t || exit 1
for i in 1 2 3 4 5 6; do head -n \${i}000 ../lines > f\$i && git add . && git commit -q -m \"commit \$i\" || exit 1; done
git log --stat --format=%H && git status --short --branch && git gc -q && git fsck --full 2>&1 && git diff HEAD~3 | cksum"
compare "bash: strings, arrays, many forks" bash "bash -c 'a=(); for i in \$(seq 1 3000); do a+=(\"\$i\$i\"); done; for i in 1 2 3 4 5 6 7 8; do echo \$(echo \${a[@]:\$i:40} | wc -c); done'"
compare "make: reads this project's rules" make "make -C tree -s -n help BUILD=b 2>&1 | cksum"
compare "find and xargs" find "find tree -name '*.[ch]' | LC_ALL=C sort | xargs wc -c | tail -n 1"

echo "1..$count"
[ "$failed" -eq 0 ]
