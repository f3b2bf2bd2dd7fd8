#!/bin/sh
# run.sh [--fetch] [LIBRARY...]: numa.c under each library in an emulated machine of four nodes. Prints TAP.
#
#   --fetch   may download the kernel (27 MB, through apt-get, into the build folder; nothing is installed)
#   LIBRARY   a path, or "libc" for the C library's own malloc; without any, tlfl and its variants hardened and remote
#
# Needs qemu-system-x86_64 and cpio. One boot a library, a few seconds each.
set -u

# shellcheck source=../e2e/fixtures/tap.sh
. "$(dirname "$0")/../e2e/fixtures/tap.sh"
here=$root/tests/guest
guest=$build/guest
kernel=$guest/vmlinuz

LIMIT=300       # seconds for one boot; it takes five
PASS=65         # qemu's exit status when init.c reports 0: neither a panic (0) nor an error of qemu's own (1)
NODE_MB=192     # memory of a node
CPUS_PER_NODE=2 # so that a node is more than a CPU

fetch=no
if [ "${1:-}" = --fetch ]; then
  fetch=yes
  shift
fi
for library; do
  case $library in
    libc) ;;
    -*) die 2 "unknown option '$library': want [--fetch] [LIBRARY...]" ;;
    *) [ -f "$library" ] || die 2 "$library: no such library; want [--fetch] [LIBRARY...]" ;;
  esac
done
if [ $# -eq 0 ]; then
  for variant in '' -hardened -remote; do
    [ -f "$build/lib/libtlfl$variant.so" ] && set -- "$@" "$build/lib/libtlfl$variant.so"
  done
fi

leave_out() {
  skip "memory by node in an emulated machine" "$1"
  finish
}

# Debian's kernel for virtual machines: all that is needed is built in.
get_kernel() {
  [ -f "$kernel" ] && return
  [ $fetch = yes ] || leave_out "its kernel is fetched by make check-long only"
  package=$(LC_ALL=C apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')
  [ -n "$package" ] || leave_out "apt knows no linux-image-cloud-amd64"
  # apt drops its rights, and may not write where we may.
  (cd "$dir" && chmod 755 . && apt-get -q download "$package") >"$guest/fetch.log" 2>&1 ||
    leave_out "the kernel could not be downloaded: $(sed -n 's/^E: //p' "$guest/fetch.log" | tail -n 1)"
  mkdir -p "$dir/kernel" && dpkg-deb -x "$dir/$package"_*.deb "$dir/kernel" && cp "$dir"/kernel/boot/vmlinuz-* "$kernel" ||
    leave_out "the kernel package could not be unpacked"
}

build_programs() {
  flags='-std=gnu11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE'
  # shellcheck disable=SC2086 # words
  ${CC:-gcc} $flags -static "$here/init.c" -o "$guest/init" &&
    ${CC:-gcc} $flags -I"$root/tests/conformance" -fno-builtin-malloc -fno-builtin-free "$here/numa.c" -lpthread -o "$guest/numa"
}

# image OBJECT: the root file system, as one file: the programs, the object and what these need.
image() {
  rm -rf "$dir/root"
  mkdir -p "$dir/root/lib" "$dir/root/lib64" "$dir/root/dev" || return
  cp "$guest/init" "$guest/numa" "$dir/root" && cp -L "$1" "$dir/root/lib" || return
  for need in $(ldd "$guest/numa" "$1" | sed -n 's/.* \(\/[^ ]*\) (0x.*/\1/p;s/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p' | sort -u); do
    case $need in
      */ld-linux*) cp -L "$need" "$dir/root/lib64" ;;
      *) cp -L "$need" "$dir/root/lib" ;;
    esac || return
  done
  (cd "$dir/root" && find . | cpio --quiet -o -H newc) >"$dir/image"
}

# boot [LIBRARY-IN-GUEST]: leaves the test's lines in $dir/out, the console in $dir/console.
boot() {
  set -- ${1:+"library=$1"}
  nodes='' distances=''
  for node in 0 1 2 3; do
    first=$((node * CPUS_PER_NODE))
    nodes="$nodes -object memory-backend-ram,id=m$node,size=${NODE_MB}M"
    nodes="$nodes -numa node,nodeid=$node,cpus=$first-$((first + CPUS_PER_NODE - 1)),memdev=m$node"
    for other in 0 1 2 3; do
      [ $other -eq $node ] || distances="$distances -numa dist,src=$node,dst=$other,val=20"
    done
  done
  # shellcheck disable=SC2086 # words
  timeout -k 5 $LIMIT qemu-system-x86_64 -M pc -accel tcg,thread=single -cpu max \
    -smp $((4 * CPUS_PER_NODE)),sockets=4,cores=$CPUS_PER_NODE,threads=1 -m $((4 * NODE_MB)) $nodes $distances \
    -kernel "$kernel" -initrd "$dir/image" -append "console=ttyS0 quiet panic=-1 $*" \
    -nodefaults -display none -no-reboot -device isa-debug-exit,iobase=0xf4,iosize=4 \
    -serial file:"$dir/console" -serial file:"$dir/out" >"$dir/said" 2>&1 </dev/null
}

one_library() {
  case $1 in
    libc) name=libc object=$guest/numa inside= ;;
    *) name=$(basename "$1" .so) object=$1 inside=/lib/$(basename "$1") ;;
  esac
  : >"$dir/out"
  if ! image "$object" 2>"$dir/said"; then
    is "$name: the image is made" no yes
    sed 's/^/#   /' "$dir/said"
    return
  fi
  boot "$inside"
  status=$?
  tr -d '\r' <"$dir/out" >"$dir/lines"
  while read -r line; do
    case $line in
      'ok '*) checks=$((checks + 1)) && echo "ok $checks - $name: ${line#*- }" ;;
      'not ok '*) checks=$((checks + 1)) failed=1 && echo "not ok $checks - $name: ${line#*- }" ;;
      1..*) plan=${line#1..} ;;
      *) echo "#   $line" ;;
    esac
  done <"$dir/lines"
  bad=$(grep -c '^not ok' "$dir/lines")
  want=$PASS
  [ "$bad" -eq 0 ] || want=$((PASS + 2))
  is "$name: the machine ends as the test says, after all its lines" \
    "$status, $(grep -c '^ok\|^not ok' "$dir/lines") lines" "$want, ${plan:-no plan} lines"
  [ $status -eq $want ] || cat "$dir/said" "$dir/console" 2>/dev/null | tail -n 20 | sed 's/^/#   /'
}

[ "$(uname -m)" = x86_64 ] || leave_out "made for x86-64"
! lacks qemu-system-x86_64 cpio || leave_out "$lacking"
mkdir -p "$guest" || exit 3
get_kernel
if ! build_programs 2>"$dir/said"; then
  is "init.c and numa.c build" no yes
  sed 's/^/#   /' "$dir/said"
  finish
fi
for library; do
  plan=
  one_library "$library"
done
finish
