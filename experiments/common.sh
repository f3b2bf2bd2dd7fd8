# common.sh - to be sourced by scripts that have set $root (the tree): $build, a folder $dir that goes away at the end,
# and the functions say, die, has, lacks, need, count_check, loadable, usage. Answers --help by the head comment of the
# script.
# shellcheck shell=sh

me=${me:-$(basename "$0")} # what messages begin with

say() { printf '%s: %s\n' "$me" "$*" >&2; }
# die STATUS MESSAGE: 2 wrong usage, 3 the environment lacks something
die() {
  status=$1
  shift
  say "$*"
  exit "$status"
}

# The script's head comment, which is its usage.
usage() { sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"; }
case " $* " in *" --help "* | *" -h "*) usage && exit 0 ;; esac

BUILD=${BUILD:-build}
# shellcheck disable=SC2154,SC2034 # $root is the script's, $build for it
case $BUILD in
  *[[:space:]]*) die 3 "BUILD='$BUILD': make cannot handle a folder with blanks" ;;
  /*) build=$BUILD ;;
  *) build=$root/$BUILD ;;
esac

# LD_PRELOAD and lists of words have to be able to hold it.
case ${TMPDIR:-} in *[[:space:]:]*) export TMPDIR=/tmp ;; esac
dir=$(mktemp -d) || die 3 "no folder for temporary files: TMPDIR names one"
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

has() { command -v "$1" > /dev/null 2>&1; }

# lacks TOOL...: true if one is not there; then $lacking says which, and what to do.
lacks() {
  for tool; do
    has "$tool" && continue
    case $tool in
      musl-gcc | dpkg-source) lacking="no $tool: make deps-apps installs it" ;;
      qemu-* | cpio | *-linux-gnu*-gcc) lacking="no $tool: make deps-long installs it" ;;
      */*) lacking="no $tool: make builds it" ;;
      apt-get | dpkg-deb) lacking="no $tool: this needs a Debian system" ;;
      *) lacking="no $tool: make deps installs it" ;;
    esac
    return 0
  done
  return 1
}
# need TOOL...: or the end, with one line
need() { ! lacks "$@" || die 3 "$lacking"; }

COUNT_DIGITS=12 # of the largest number that a shell, awk and C hold alike
# count_check NAME VALUE: a number of ops, rounds or launches, or the end.
count_check() {
  case $2 in '' | 0* | *[!0-9]*) die 2 "$1='$2': expected a whole number from 1 on" ;; esac
  [ ${#2} -le $COUNT_DIGITS ] || die 2 "$1='$2': expected at most $COUNT_DIGITS digits"
}

# loadable LIBRARY: its path, or that of a link where blanks and colons would part it in LD_PRELOAD
loadable() {
  case $1 in
    *[[:space:]:]*)
      link=$dir/loadable/$(printf '%s' "$1" | cksum | tr ' ' -)
      mkdir -p "$link" && ln -sf "$(realpath "$1")" "$link/" && printf '%s/%s' "$link" "$(basename "$1")"
      ;;
    *) printf '%s' "$1" ;;
  esac
}
