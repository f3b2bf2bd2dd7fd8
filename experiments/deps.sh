#!/bin/sh
# deps.sh: installs what the suite needs and the system lacks, through apt. Silent when all is there.
#
#   experiments/deps.sh [--long | --apps] [--list | --dry-run | --retry | --help]
#
#   --long     what only `make check-long` needs (packages-long.txt)
#   --apps     what the applications need (packages-apps.txt)
#   --list     the packages, what each is for, and whether it is there
#   --dry-run  what would be run, without running it
#   --retry    try optional packages again that could not be installed before
#
# Required packages come first and in one go; optional ones (allocators, counter libraries, linters) may fail, each
# for itself, with a warning. Exit codes: 0 all required packages are there; 2 wrong usage; 3 they are not, and
# why. AK_DEPS=skip in the environment trusts the system and does nothing.
# shellcheck disable=SC2317 # functions that each_package calls by name are not unreachable
set -u

root=$(cd "${0%/*}/.." && pwd) || exit 3
table=$root/experiments/packages.txt
work=${BUILD:-$root/build}
log=$work/deps.log
unavailable=$work/deps.unavailable # optional packages that apt could not install here, one a line

LOCK_TIMEOUT=120 # seconds to wait for another apt or dpkg
LOCK_STEP=5

say() { printf 'deps: %s\n' "$*"; }
complain() { printf 'deps: %s\n' "$*" >&2; }
usage() { sed -n '2,14{s/^# \{0,1\}//;p;}' "$0"; }
has() { command -v "$1" >/dev/null 2>&1; }

# True if $1 is a word of $2.
among() {
  case " $2 " in
    *" $1 "*) return 0 ;;
  esac
  return 1
}

# Lines "NAME[|NAME...] NEED WHY" of the table, through $1 NAMES NEED WHY.
each_package() {
  while read -r names need why; do
    case $names in
      '' | '#'*) continue ;;
    esac
    "$1" "$names" "$need" "$why"
  done <"$table"
}

# ---- what is there --------------------------------------------------------------------------

# Adds NAME|NAME... to `all_names`, as words.
add_names() {
  rest=$1
  while [ -n "$rest" ]; do
    all_names="$all_names ${rest%%|*}"
    next_name
  done
}

# Takes the first NAME off `rest`.
next_name() {
  case $rest in
    *'|'*) rest=${rest#*|} ;;
    *) rest= ;;
  esac
}

# Sets `installed` to words STATUS:NAME for the table's packages, by one call of dpkg-query.
look() {
  all_names=
  each_package add_names
  # shellcheck disable=SC2086,SC2016 # a list of words; dpkg-query's own variables
  installed=$(dpkg-query -W -f='${db:Status-Status}:${Package} ' $all_names 2>/dev/null)
}

# True if one of NAME|NAME... is installed.
is_there() {
  rest=$1
  while [ -n "$rest" ]; do
    among "installed:${rest%%|*}" "$installed" && return 0
    next_name
  done
  return 1
}

# Sorts a package into `required` or `optional` where it is missing; `given_up` are those that failed before.
sort_missing() {
  is_there "$1" && return
  if [ "$2" = required ]; then
    required="$required $1"
  elif [ "$retry" = no ] && among "$1" "$failed_before"; then
    given_up="$given_up ${1%%|*}"
  else
    optional="$optional $1"
  fi
}

list_one() {
  state=missing
  is_there "$1" && state=installed
  printf '%-30s %-9s %-10s %s\n' "$1" "$2" "$state" "$3"
}

name_one() { printf '  %s (%s): %s\n' "$1" "$2" "$3"; }

# ---- installing -----------------------------------------------------------------------------

# apt-get with what every call needs; output to the log. Waits while another process holds the package lists, whose
# lock apt itself does not wait for.
apt_get() {
  if [ "$dry" = yes ]; then
    say "would run: ${sudo:+$sudo }apt-get $*"
    return 0
  fi
  waited=0
  while :; do
    # shellcheck disable=SC2086 # $sudo is a word or nothing
    LC_ALL=C $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=$LOCK_TIMEOUT "$@" \
      >"$log.step" 2>&1 </dev/null
    rc=$?
    cat "$log.step" >>"$log"
    if [ $rc -eq 0 ] || [ $waited -ge $LOCK_TIMEOUT ] || ! grep -q 'Could not get lock' "$log.step"; then
      return $rc
    fi
    [ $waited -eq 0 ] && say "another process is using apt: waiting up to $LOCK_TIMEOUT s"
    sleep $LOCK_STEP
    waited=$((waited + LOCK_STEP))
  done
}

# The last thing that apt complained about, on one line.
last_error() { sed -n -e 's/^[EW]: //p' "$log.step" 2>/dev/null | tail -n 1; }

# Of NAME|NAME... the first that apt knows; the first name where it knows none, or where there is no choice.
pick() {
  rest=$1
  while [ "${1#*|}" != "$1" ] && [ -n "$rest" ]; do
    name=${rest%%|*}
    if apt-cache show "$name" >/dev/null 2>&1; then
      printf '%s' "$name"
      return
    fi
    next_name
  done
  printf '%s' "${1%%|*}"
}

pick_all() {
  for package in $1; do
    printf '%s ' "$(pick "$package")"
  done
}

install() { apt_get install -y --no-install-recommends "$@"; }

install_required() {
  [ -n "$required" ] || return 0
  # shellcheck disable=SC2046 # a list of words
  if ! install $(pick_all "$required"); then
    complain "cannot install${required}: $(last_error)${update_error} (no network? no room? the log: $log)"
    exit 3
  fi
}

# All at once where that works, else each for itself.
install_optional() {
  [ -n "$optional" ] || return 0
  # shellcheck disable=SC2046 # a list of words
  install $(pick_all "$optional") && return
  for package in $optional; do
    if ! install "$(pick "$package")"; then
      complain "warning: optional package ${package%%|*} could not be installed: $(last_error)"
      printf '%s\n' "$package" >>"$unavailable"
    fi
  done
}

# Sets `sudo` to how apt-get is run as root, or says what a person may run, and stops.
become_root() {
  sudo=
  [ "$(id -u)" -eq 0 ] && return
  if has sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    sudo=sudo
    return
  fi
  if [ -z "$required" ]; then
    complain "optional packages are missing, and there is neither root nor sudo:$optional"
    exit 0
  fi
  # shellcheck disable=SC2046 # a list of words
  complain "packages are missing, and there is neither root nor sudo. As root run:"
  printf '  apt-get update && apt-get install -y --no-install-recommends %s\n' "$(pick_all "$required$optional")" >&2
  exit 3
}

# ---- main -----------------------------------------------------------------------------------

mode=install dry=no retry=no
for argument; do
  case $argument in
    --long | --apps) table=$root/experiments/packages-${argument#--}.txt ;;
    --list) mode=list ;;
    --dry-run) dry=yes ;;
    --retry) retry=yes ;;
    --help) usage && exit 0 ;;
    *)
      complain "unknown argument '$argument': expected --long, --apps, --list, --dry-run, --retry or --help"
      exit 2
      ;;
  esac
done

case ${AK_DEPS:-} in
  '' | skip) ;;
  *)
    complain "AK_DEPS='$AK_DEPS': expected skip, or nothing"
    exit 2
    ;;
esac
if [ "${AK_DEPS:-}" = skip ] && [ $mode = install ]; then
  exit 0
fi
if ! has dpkg-query || ! has apt-get; then
  installed=
  if [ $mode = list ]; then
    each_package list_one
    exit 0
  fi
  complain "this system has no apt. Install by its own means (Debian's names), then run make with AK_DEPS=skip:"
  each_package name_one >&2
  exit 3
fi

look
if [ $mode = list ]; then
  each_package list_one
  exit 0
fi

failed_before=
if [ -r "$unavailable" ]; then
  failed_before=$(tr '\n' ' ' <"$unavailable")
fi
required='' optional='' given_up=''
each_package sort_missing
if [ -n "$given_up" ]; then
  complain "left out, optional and not available here:$given_up ($0 --retry tries again)"
fi
if [ -z "$required$optional" ]; then
  [ $dry = yes ] && say "nothing is missing"
  exit 0
fi

become_root
say "missing, to be installed:${required:+$required (required)}${optional:+$optional (optional)}"
if [ $dry = no ]; then
  mkdir -p "$work" && : >"$log" || exit 3
  [ $retry = yes ] && rm -f "$unavailable"
fi
# A failed update is no end yet: the packages may be in apt's cache.
update_error=
apt_get update || update_error="; apt-get update had failed: $(last_error)"
install_required
install_optional
rm -f "$log.step"
[ $dry = yes ] && exit 0

look
required='' optional='' given_up=''
each_package sort_missing
if [ -n "$required" ]; then
  complain "apt-get reported success, but these are still missing:$required (log: $log)"
  exit 3
fi
say "done"
