#!/bin/sh
# peers.sh: newer allocators as rivals, from binary packages of later Debian releases; nothing is installed.
#
# Downloads the packages of the table below through an apt configuration of its own (sources, state and cache under
# build/peers; mirror and proxy as the machine's apt has them; signed by Debian's keyring), unpacks each, and links its
# library as build/lib/lib<entry>.so, where the registry's optional entries of these names look. Prints a line an entry:
# version, and whether it loads or why not; an entry that does not load is a skipped row, never a failure.
#
# PEERS_MIRROR names another mirror; one that begins with file: is the user's own folder and need not be signed.
# Exit 3, with one line, where there is no apt, no mirror, or no network. Where it is stopped by a signal it ends what it
# started, and removes what was half unpacked.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
# shellcheck disable=SC2034 # for common.sh
me=peers
# shellcheck source=common.sh
. "$root/experiments/common.sh"
work=$build/peers
# shellcheck source=apt.sh
. "$root/experiments/apt.sh"

# entry of the registry, release, package, library
PEERS='
mimalloc-trixie   trixie  libmimalloc3             libmimalloc.so.3
mimalloc-sid      sid     libmimalloc3             libmimalloc.so.3
jemalloc-trixie   trixie  libjemalloc2             libjemalloc.so.2
tbbmalloc-trixie  trixie  libtbbmalloc2            libtbbmalloc_proxy.so.2
tcmalloc-trixie   trixie  libtcmalloc-minimal4t64  libtcmalloc_minimal.so.4
'

# unpack RELEASE PACKAGE LIBRARY: download and unpack into $folder; sets `version` and `library`, or `why` it is not there.
unpack() {
  cd "$folder/package" || exit 3 # where apt downloads to
  apt download "$2/$1" || { why=$(last_error) && return; }
  version=$(dpkg-deb -f "$folder"/package/*.deb Version)
  run dpkg-deb -x "$folder"/package/*.deb "$folder" 2> "$work/log" || { why=$(tail -n 1 "$work/log") && return; }
  library=$(find "$folder" -name "$3" | head -n 1)
  [ -n "$library" ] || why="the package has no $3"
}

# peer ENTRY RELEASE PACKAGE LIBRARY: in place of what an earlier call left, once it is whole.
peer() {
  why='' version=''
  folder=$work/$1.new
  rm -rf "$folder"
  mkdir -p "$folder/package" || exit 3
  unpack "$2" "$3" "$4"
  cd "$root" || exit 3
  link=$build/lib/lib$1.so
  rm -rf "${work:?}/$1" "$link"
  if [ -z "$why" ]; then
    mv "$folder" "$work/$1" && ln -s "../peers/$1${library#"$folder"}" "$link" || exit 3
  fi
  rm -rf "$folder"
  folder=
}

[ $# -eq 0 ] || die 2 "'$1': expected no arguments"
need apt-get dpkg-deb jq
[ -x "$build/bin/ak" ] || die 3 "$build/bin/ak is not there: run make"
mirror=$(mirror_find "${PEERS_MIRROR:-}")
[ -n "$mirror" ] || die 3 "apt has no source of this release: name a mirror of Debian by PEERS_MIRROR"
mkdir -p "$build/lib" || exit 3
printf '%s' "$PEERS" | awk -v options="$(mirror_options "$mirror")" -v mirror="$mirror" \
  'NF && !seen[$2]++ { print "deb [" options "] " mirror " " $2 " main" }' | apt_configure
apt_update

while read -r entry release package library; do
  [ -n "$entry" ] || continue
  peer "$entry" "$release" "$package" "$library"
  if [ -z "$why" ]; then
    why=$("$build/bin/ak" list allocators --json | jq -er --arg name "$entry" '.[] | select(.name == $name) | .trouble') ||
      why="ak cannot say whether it loads"
  fi
  [ -z "$why" ] || why="$why: skipped"
  printf '%-16s %s %s (%s): %s\n' "$entry" "$package" "${version:-"-"}" "$release" "${why:-loads}"
done << LIST
$PEERS
LIST
