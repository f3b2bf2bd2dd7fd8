#!/bin/sh
# peers.sh: newer allocators as rivals, from binary packages of later Debian releases; nothing is installed.
#
# Downloads the packages of the table below through an apt configuration of its own (sources, state and cache under
# build/peers; mirror and proxy as the machine's apt has them; signed by Debian's keyring), unpacks each, and links its
# library as build/lib/lib<entry>.so, where the registry's optional entries of these names look. Prints a line an entry:
# version, and whether it loads or why not; an entry that does not load is a skipped row, never a failure.
#
# PEERS_MIRROR names another mirror; one that begins with file: is the user's own folder and need not be signed.
# Exit 3, with one line, where there is no apt, no mirror, or no network.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
BUILD=${BUILD:-build}
case $BUILD in /*) build=$BUILD ;; *) build=$root/$BUILD ;; esac
work=$build/peers
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# entry of the registry, release, package, library
PEERS='
mimalloc-trixie   trixie  libmimalloc3             libmimalloc.so.3
mimalloc-sid      sid     libmimalloc3             libmimalloc.so.3
jemalloc-trixie   trixie  libjemalloc2             libjemalloc.so.2
tbbmalloc-trixie  trixie  libtbbmalloc2            libtbbmalloc_proxy.so.2
tcmalloc-trixie   trixie  libtcmalloc-minimal4t64  libtcmalloc_minimal.so.4
'

die() {
  printf 'peers: %s\n' "$*" >&2
  exit 3
}

# The last thing that apt complained about, on one line.
last_error() { sed -n -e 's/^[EW]: //p' "$work/log" | tail -n 1; }

# The mirror that this release comes from.
mirror_find() {
  [ -z "${PEERS_MIRROR:-}" ] || { printf '%s' "$PEERS_MIRROR" && return; }
  # shellcheck disable=SC2016 # apt's own variables
  apt-get indextargets --no-release-info --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2> /dev/null |
    awk -v release="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" '$1 == release { print $2; exit }'
}

apt() { LC_ALL=C apt-get -c "$work/apt.conf" -q "$@" > "$work/log" 2>&1 < /dev/null; }

configure() {
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages" "$build/lib" || exit 3
  : > "$work/state/status"
  case $mirror in
    file:*) options=trusted=yes ;;
    *) options=signed-by=$keyring ;;
  esac
  for release in $(printf '%s' "$PEERS" | awk 'NF { print $2 }' | sort -u); do
    echo "deb [$options] $mirror $release main"
  done > "$work/sources.list"
  # What the machine's own configuration runs after an update is about the machine's own lists.
  cat > "$work/apt.conf" << CONF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
Dir::State "$work/state";
Dir::State::status "$work/state/status";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF
}

# peer ENTRY RELEASE PACKAGE LIBRARY: download, unpack and link; sets `version`, or `why` it is not there.
peer() {
  folder=$work/$1
  link=$build/lib/lib$1.so
  why='' version=''
  rm -rf "$folder" "$link"
  mkdir -p "$folder/package" || exit 3
  if ! (cd "$folder/package" && apt download "$3/$2"); then
    why=$(last_error)
    return
  fi
  version=$(dpkg-deb -f "$folder"/package/*.deb Version)
  dpkg-deb -x "$folder"/package/*.deb "$folder" 2> "$work/log" || { why=$(tail -n 1 "$work/log") && return; }
  library=$(find "$folder" -name "$4" | head -n 1)
  [ -n "$library" ] || { why="the package has no $4" && return; }
  ln -s "../peers/$1${library#"$folder"}" "$link"
}

for tool in apt-get dpkg-deb; do
  command -v $tool > /dev/null || die "$tool is not here: this needs a Debian system"
done
mirror=$(mirror_find)
[ -n "$mirror" ] || die "apt has no source of this release: name a mirror of Debian by PEERS_MIRROR"
configure
apt update || die "no lists of packages to be had: $(last_error)"
grep -q '^Err\|^E: ' "$work/log" && die "no lists of packages to be had: $(last_error)"

printf '%s' "$PEERS" | while read -r entry release package library; do
  [ -n "$entry" ] || continue
  peer "$entry" "$release" "$package" "$library"
  if [ -z "$why" ]; then
    why=$("$build/bin/ak" list allocators --json | jq -er --arg name "$entry" '.[] | select(.name == $name) | .trouble') ||
      why="ak cannot say whether it loads"
  fi
  [ -z "$why" ] || why="$why: skipped"
  printf '%-16s %s %s (%s): %s\n' "$entry" "$package" "${version:-"-"}" "$release" "${why:-loads}"
done
