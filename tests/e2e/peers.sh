#!/bin/sh
# make peers against a small repository in a folder: one library that loads, one that the loader refuses, one package
# without its library, the rest not there; and against no repository at all.
# shellcheck disable=SC2317 # functions that check calls by name are not unreachable
. "$(dirname "$0")/fixtures/tap.sh"

skip_without peers apt-get dpkg-deb jq
architecture=$(dpkg --print-architecture)
repo=$dir/repo

# package SUITE NAME VERSION FILE: a package with FILE as its library, listed in the suite's index
package() {
  rm -rf "$dir/tree"
  mkdir -p "$dir/tree/DEBIAN" "$dir/tree/usr/lib/x" "$repo/pool" "$repo/dists/$1/main/binary-$architecture"
  printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody <nobody@example.org>\nDescription: a test\n' \
    "$2" "$3" "$architecture" > "$dir/tree/DEBIAN/control"
  [ -z "$4" ] || cp "$4" "$dir/tree/usr/lib/x/$5"
  dpkg-deb --build --root-owner-group "$dir/tree" "$repo/pool/$2_$3.deb" > /dev/null
  {
    cat "$dir/tree/DEBIAN/control"
    echo "Filename: pool/$2_$3.deb"
    echo "Size: $(wc -c < "$repo/pool/$2_$3.deb")"
    echo "SHA256: $(sha256sum "$repo/pool/$2_$3.deb" | cut -d ' ' -f 1)"
    echo
  } >> "$repo/dists/$1/main/binary-$architecture/Packages"
}

# release SUITE: the file that names it and its index
release() {
  index=main/binary-$architecture/Packages
  printf 'Suite: %s\nCodename: %s\nArchitectures: %s\nComponents: main\nSHA256:\n %s %s %s\n' "$1" "$1" "$architecture" \
    "$(sha256sum "$repo/dists/$1/$index" | cut -d ' ' -f 1)" "$(wc -c < "$repo/dists/$1/$index")" "$index" > "$repo/dists/$1/Release"
}

# A build folder of its own: programs and kernels as they are, libraries apart.
own=$dir/build
mkdir "$own"
for part in bin kernels counters root; do cp -r "$build/$part" "$own/"; done
mkdir "$own/lib"
cp "$build/lib/libbump.so" "$own/lib/"
printf 'no library\n' > "$dir/broken"
package trixie libmimalloc3 3.0.1 "$own/lib/libbump.so" libmimalloc.so.3
package sid libmimalloc3 3.9.9 "$dir/broken" libmimalloc.so.3
package trixie libjemalloc2 5.9 '' ''
release trixie
release sid
peers() { BUILD=$own PEERS_MIRROR=$1 "$root/experiments/peers.sh" > "$dir/said" 2>&1; }

check "downloads and unpacks" peers "file:$repo"
check "what loads says so" grep -q '^mimalloc-trixie .*libmimalloc3 3.0.1 (trixie): loads$' "$dir/said"
check "before the download doctor says how to get one" sh -c "'$own/bin/ak' doctor | grep -A 2 'jemalloc-trixie is not installed' | grep 'fix: make peers'"
check "what does not load has the reason" grep -q '^mimalloc-sid .*libmimalloc3 3.9.9 (sid): .*cannot\|^mimalloc-sid .*ELF' "$dir/said"
check "a package without the library" grep -q '^jemalloc-trixie .*: the package has no libjemalloc.so.2: skipped$' "$dir/said"
check "a package that is not there" grep -q "^tcmalloc-trixie .*(trixie): .*libtcmalloc" "$dir/said"
is "a line an entry" "$(wc -l < "$dir/said")" "$(grep -c '^\[.*-\(trixie\|sid\)\]$' "$root/allocators/registry.ini")"
check "the registry finds it" sh -c "'$own/bin/ak' list allocators --json | jq -e '.[] | select(.name == \"mimalloc-trixie\") | .found'"
check "a variable of the registry is in the list" \
  sh -c "'$own/bin/ak' list allocators --json | jq -e '.[] | select(.name == \"mimalloc-sid-nothp\") | .env == [\"MIMALLOC_ALLOW_THP=0\"]'"
is "links, and nothing else, lie beside the libraries" "$(find "$own/lib" -newer "$dir/broken" | wc -l)" "$(find "$own/lib" -newer "$dir/broken" \( -type l -o -type d \) | wc -l)"
before=$(cat "$dir/said")
check "again, with the same end" peers "file:$repo"
is "the same lines" "$(cat "$dir/said")" "$before"

peers "file:$dir/nothing"
is "no repository: exit 3" $? 3
is "no repository: one line" "$(wc -l < "$dir/said")" 1

# Stopped in mid-download: what it started ends, what is half made goes, what an earlier call made stays.
mkdir "$dir/fakes"
cat > "$dir/fakes/apt-get" << 'SH'
#!/bin/sh
case " $* " in *" download "*) ;; *) exit 0 ;; esac
echo half > half.deb
sleep 600 &
echo $! > "$STARTED.new" && mv "$STARTED.new" "$STARTED"
wait
SH
chmod +x "$dir/fakes/apt-get"
# stopped SIGNAL STATUS
stopped() {
  export STARTED="$dir/started.$1"
  # not a child of a shell that ignores SIGINT, as this one's background would
  env PATH="$dir/fakes:$PATH" BUILD="$own" PEERS_MIRROR="file:$repo" env --default-signal=INT "$root/experiments/peers.sh" > "$dir/said" 2>&1 &
  pid=$!
  for _ in $(seq 200); do
    [ ! -e "$STARTED" ] || break
    sleep 0.05
  done
  kill -"$1" $pid
  wait $pid
  is "stopped by $1: exit $2" $? "$2"
  is "stopped by $1: one line" "$(cat "$dir/said")" "peers: stopped"
  is "what it started has ended" "$(ps -o stat= -p "$(cat "$STARTED")" | grep -v Z)" ""
  is "what was half made is gone" "$(ls -d "$own"/peers/*.new 2> /dev/null)" ""
  check "what an earlier call made is there" test -e "$own/lib/libmimalloc-trixie.so"
}
stopped TERM 143
stopped INT 130

# env reaches the process, with $ORIGIN the library's folder, and stands in meta.json.
cat > "$dir/tell.c" << 'C'
#include <stdlib.h>
const char *tell(void);
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t n) { return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
void free(void *p) { __libc_free(p); }
const char *tell(void) { const char *v = getenv("TOLD"); return v ? v : "nothing"; }
C
"${CC:-gcc}" -fno-builtin -fPIC -shared "$dir/tell.c" -o "$dir/libtell.so" || exit 3
# shellcheck disable=SC2016 # the loader's word
printf '[tell]\nlibrary = %s\nversion = string:tell\nenv = TOLD=in $ORIGIN\n' "$dir/libtell.so" > "$dir/more.ini"
printf 'kernel = null\nallocators = tell\nops = 100\nreps = 1\n' > "$dir/one.sweep"
check "a run with a variable" "$build/bin/ak" run "$dir/one.sweep" --registry "$dir/more.ini" --preset smoke --out "$dir/run"
is "the process had it" "$(awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "allocator_version") at = i } NR == 2 { print $at }' \
  "$dir/run/runs.csv")" "in $dir"
is "meta.json keeps it" "$(jq -r '.allocators[0].env[0]' "$dir/run/meta.json")" "TOLD=in $dir"
finish
