#!/bin/sh
# musl.sh: what static programs of musl take, and mimalloc's secure mode, from Debian 12's source packages.
#
#   experiments/musl.sh [secure]
#
# Fetches the sources of the table below through an apt configuration of its own (sources, state and cache under build/musl;
# mirror and proxy as the machine's apt has them), and builds with musl-gcc
#   build/musl/lib/libhwloc.a, libjansson.a                what the kernels' harness is linked with
#   build/musl/lib/musl-jemalloc.a, musl-mimalloc.a        allocators for `make musl` to link in
# and with this system's compiler
#   build/lib/libmimalloc-secure.so                        mimalloc in secure mode (MI_SECURE=4); with `secure` nothing else
# What is there already is left as it is. Nothing is installed.
#
# The list of packages is signed by Debian's keyring and names each source's digest; apt checks both, and the digests of the
# archives again before they are unpacked. MUSL_MIRROR names another mirror; one that begins with file: is the user's own
# folder and need not be signed.
#
# Exit 3, with one line, where there is no apt, compiler, mirror or network, or where a part cannot be built (its output is
# in build/musl/PART.log). Stopped by a signal it ends what it started; what was half made is never taken for whole.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
# shellcheck disable=SC2034 # for common.sh
me=musl
# shellcheck source=common.sh
. "$root/experiments/common.sh"
work=$build/musl
# shellcheck source=apt.sh
. "$root/experiments/apt.sh"

RELEASE=bookworm
# package and its version without Debian's revision: what is compared with published numbers is a version
SOURCES='
jansson   2.14
hwloc     2.9.0
jemalloc  5.3.0
mimalloc  2.0.9
'
PARTS='jansson hwloc jemalloc mimalloc'
CFLAGS_OURS='-O2'
# as mimalloc's own build has it
MIMALLOC_FLAGS="$CFLAGS_OURS -std=gnu11 -DNDEBUG -DMI_MALLOC_OVERRIDE -ftls-model=initial-exec -fno-builtin-malloc"

# ---- sources -------------------------------------------------------------------------------

version_of() { printf '%s' "$SOURCES" | awk -v name="$1" '$1 == name { print $2 }'; }

# The list of packages once for all.
listed=no
list_sources() {
  [ $listed = no ] || return 0
  need apt-get dpkg-source
  mirror=$(mirror_find "${MUSL_MIRROR:-}" $RELEASE)
  [ -n "$mirror" ] || die 3 "apt has no source of $RELEASE: name a mirror of Debian by MUSL_MIRROR"
  echo "deb-src [$(mirror_options "$mirror")] $mirror $RELEASE main" | apt_configure
  apt_update
  listed=yes
}

# source_get PACKAGE: into $work/source/PACKAGE, once it is whole
source_get() {
  [ ! -d "$work/source/$1" ] || return 0
  list_sources
  folder=$work/source/$1.new
  rm -rf "$folder"
  mkdir -p "$folder" || exit 3
  cd "$folder" || exit 3 # where apt downloads to
  apt source --only-source "$1" || die 3 "no source of $1 to be had: $(last_error)"
  found=$(sed -n -e 's/^Version: //p' "$folder"/*.dsc | head -n 1)
  case $found in
    "$(version_of "$1")"[-+]*) ;;
    *) die 3 "$mirror has $1 $found, expected $(version_of "$1")" ;;
  esac
  set -- "$1" "$folder/$1"-*/
  mv "$2" "$folder/tree" && printf '%s\n' "$found" > "$folder/version" || exit 3
  cd "$root" || exit 3
  mv "$folder" "$work/source/$1" || exit 3
  folder=
}

# ---- builds --------------------------------------------------------------------------------

# Each in a copy of its source, $tree, and installed by what follows; `put` is the last step of each.

# put FILE TARGET: in one step
put() { mkdir -p "$(dirname "$2")" && cp "$1" "$2.new" && mv "$2.new" "$2"; }

# configured FLAG...: configure and make in $tree, in no more jobs than CPUs
configured() { ./configure CC=musl-gcc CFLAGS="$CFLAGS_OURS" "$@"; }
jobs=$(nproc)

# What its configure, which the source package lacks, would find on any Linux; the atomic counts matter for speed.
jansson_build() {
  cd src || return 1
  sed -e 's/@json_inline@/inline/' -e 's/@json_[a-z_]*@/1/' jansson_config.h.in > jansson_config.h
  for name in STDINT_H UNISTD_H FCNTL_H SCHED_H ENDIAN_H SYS_TIME_H SYS_TYPES_H SYS_STAT_H SYS_PARAM_H OPEN READ CLOSE GETPID \
    GETTIMEOFDAY SCHED_YIELD LOCALECONV ATOMIC_BUILTINS SYNC_BUILTINS; do
    echo "#define HAVE_$name 1"
  done > jansson_private_config.h
  printf '#define USE_URANDOM 1\n#define INITIAL_HASHTABLE_ORDER 3\n' >> jansson_private_config.h
  # shellcheck disable=SC2086 # a list of words
  musl-gcc $CFLAGS_OURS -DHAVE_CONFIG_H -I. -c ./*.c && ar rcs libjansson.a ./*.o &&
    put jansson.h "$work/include/jansson.h" && put jansson_config.h "$work/include/jansson_config.h" &&
    put libjansson.a "$work/lib/libjansson.a"
}

# Caches, cores and nodes from Linux alone.
hwloc_build() {
  configured --disable-shared --enable-static --prefix="$tree/out" --disable-libxml2 --disable-pci --disable-cairo --disable-opencl \
    --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl --disable-libudev --disable-io &&
    make -j"$jobs" -C hwloc install && make -C include install && mkdir -p "$work/include" &&
    cp -r out/include/. "$work/include/" && put out/lib/libhwloc.a "$work/lib/libhwloc.a"
}

jemalloc_build() {
  configured --disable-cxx --disable-shared --disable-doc --prefix="$tree/out" && make -j"$jobs" lib/libjemalloc.a &&
    put lib/libjemalloc.a "$work/lib/musl-jemalloc.a"
}

mimalloc_build() {
  # shellcheck disable=SC2086 # a list of words
  musl-gcc $MIMALLOC_FLAGS -DMI_STATIC_LIB -Iinclude -c src/static.c -o static.o && ar rcs libmimalloc.a static.o &&
    put libmimalloc.a "$work/lib/musl-mimalloc.a"
}

# As a library of this system: preloaded like the package's, and beside it.
secure_build() {
  # shellcheck disable=SC2086 # a list of words
  "${CC:-gcc}" $MIMALLOC_FLAGS -DMI_SECURE=4 -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -fPIC -fvisibility=hidden -Iinclude -shared \
    src/static.c -lpthread -Wl,-soname,libmimalloc-secure.so -o libmimalloc-secure.so &&
    put libmimalloc-secure.so "$build/lib/libmimalloc-secure.so"
}

# built PART FILE PACKAGE: by PART_build; made anew where how it is made has changed
built() {
  part=$1 file=$2 package=$3
  how="$(version_of "$package") $("$compiler" -dumpfullversion 2> /dev/null) $(sed -n -e "/^${part}_build()/,/^}/p" -e '/FLAGS.*=/p' "$0" | cksum)"
  stamp=$work/$part.how
  if [ ! -f "$file" ] || [ "$(cat "$stamp" 2> /dev/null)" != "$how" ]; then
    source_get "$package"
    rm -f "$stamp"
    folder=$work/$part.new
    tree=$folder
    rm -rf "$folder"
    cp -r "$work/source/$package/tree" "$folder" || die 3 "no room for $folder"
    export tree work build compiler jobs
    run "$0" build-part "$part" > "$work/$part.log" 2>&1 ||
      die 3 "$part cannot be built: $(grep -m 1 -i 'error' "$work/$part.log" || tail -n 1 "$work/$part.log") ($work/$part.log)"
    rm -rf "$folder"
    folder=
    printf '%s' "$how" > "$stamp"
  fi
  printf '%-9s %s: %s\n' "$part" "$(cat "$work/source/$package/version" 2> /dev/null || version_of "$package")" "$file"
}

# musl-gcc leaves out the system's headers, and with them those of the kernel: links to these alone.
kernel_headers() {
  mkdir -p "$work/include" || exit 3
  ln -sfn /usr/include/linux "$work/include/linux"
  ln -sfn /usr/include/asm-generic "$work/include/asm-generic"
  ln -sfn "/usr/include/$(gcc -print-multiarch)/asm" "$work/include/asm"
  ln -sfn /usr/include/numaif.h "$work/include/numaif.h" # names of the memory policies, no library
}

# Called by `built` as a process of its own, which a signal can end.
if [ "${1:-}" = build-part ] && [ -n "${tree:-}" ]; then
  cd "$tree" || exit 3
  "$2_build"
  exit
fi

case ${1:-} in
  '' | secure) [ $# -le 1 ] || die 2 "'$2': expected no more arguments" ;;
  *) die 2 "'$1': expected secure, or nothing" ;;
esac
mkdir -p "$work/source" || exit 3
if [ $# -eq 0 ]; then
  need musl-gcc
  compiler=musl-gcc
  kernel_headers
  for part in $PARTS; do
    case $part in
      jansson | hwloc) file=$work/lib/lib$part.a ;;
      *) file=$work/lib/musl-$part.a ;;
    esac
    built "$part" "$file" "$part"
  done
fi
compiler=${CC:-gcc}
need "$compiler"
built secure "$build/lib/libmimalloc-secure.so" mimalloc
