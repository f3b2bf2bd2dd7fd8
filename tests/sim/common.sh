# common.sh - to be sourced by the tests of the simulated machine, which print TAP: besides what ../e2e/fixtures/tap.sh gives,
#   known WORDS ARGUMENT...   runs known.c in the machine; figure NAME is then a count of it
#   kernel ALLOCATOR WORDS KERNEL OPTION...   runs a kernel there; column NAME is then a column of its row
#   near WHAT HAVE WANT PERCENT, below WHAT HAVE LIMIT, above WHAT HAVE LIMIT   one TAP line each
# shellcheck shell=sh

# shellcheck source=../e2e/fixtures/tap.sh
. "$(dirname "$0")/../e2e/fixtures/tap.sh"
# shellcheck source=../../experiments/simulated.sh
. "$root/experiments/simulated.sh"

if ! command -v qemu-x86_64 > /dev/null || [ ! -e "$plugin" ]; then
  skip "the simulated machine" "qemu-x86_64 is not installed, or this is no x86-64"
  finish
fi
# What the tests run is built by `make tests`; a number of 7.2 is the only one that the plugin knows.
case $(qemu-x86_64 --version) in
  *"version 7.2"*) ;;
  *) skip "the simulated machine" "qemu-x86_64 is not of version 7.2"; finish ;;
esac

if ! setarch -R true 2> /dev/null; then
  skip "the simulated machine" "this system does not let addresses be fixed (personality)"
  finish
fi

known() {
  words=$1
  shift
  in_machine "$words" "$build/tests/sim/known" "$@" > "$dir/figures" 2> "$dir/said"
}

figure() { awk -v name="$1" '$1 == name { print $2 }' "$dir/figures"; }

kernel() {
  library=$(library_of "$1")
  words=$2
  shift 2
  name=$1
  shift
  # shellcheck disable=SC2086 # two words, or none
  in_machine "$words" ${library:+-E LD_PRELOAD="$library"} \
    "$build/kernels/$name" --counters sim --json "$@" > "$dir/row" 2> "$dir/said"
}

# "" for a launch that failed, and for what was not counted
column() { jq -r --arg name "$1" '.row | select(.status == "ok") | .[$name] // empty' "$dir/row"; }

# library_of ALLOCATOR: the path, "" for the C library's; nothing is said of one that is not there
library_of() {
  case $1 in
    glibc) ;;
    tlfl* | bump) echo "$build/lib/lib$1.so" ;;
    *) ldconfig -p | awk -v so="$(soname_of "$1")" '$1 == so { print $NF; exit }' ;;
  esac
}

soname_of() {
  case $1 in
    jemalloc) echo libjemalloc.so.2 ;;
    mimalloc) echo libmimalloc.so.2 ;;
    tcmalloc) echo libtcmalloc_minimal.so.4 ;;
  esac
}

compare() { awk -v have="$1" -v want="$2" "BEGIN { exit !(have != \"\" && want != \"\" && ($3)) }"; }

near() {
  printf 'have %s, want %s within %s %%\n' "$2" "$3" "$4" > "$dir/said"
  check "$1: $2, expected $3 within $4 %" compare "$2" "$3" "have + 0 >= want * (1 - $4 / 100) && have + 0 <= want * (1 + $4 / 100)"
}
below() { check "$1: $2, at most $3" compare "$2" "$3" "have + 0 <= want + 0"; }
above() { check "$1: $2, at least $3" compare "$2" "$3" "have + 0 >= want + 0"; }
