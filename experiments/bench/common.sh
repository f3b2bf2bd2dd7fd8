# common.sh - to be sourced by the parts of the benchmark: $root, $build, $out (where rows go), and the functions say, die,
# count_check, has, usage, reason_text, programs_build, provenance, allocators. Answers --help by the head comment of the script.
# shellcheck shell=sh

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 3
BUILD=${BUILD:-build}
case $BUILD in /*) build=$BUILD ;; *) build=$root/$BUILD ;; esac
# shellcheck disable=SC2034 # for the script that sources this
ak=$build/bin/ak
out=${BENCH_OUT:-$build/bench}

say() { printf 'bench: %s\n' "$*" >&2; }
# die STATUS MESSAGE
die() {
  status=$1
  shift
  printf 'bench: %s\n' "$*" >&2
  exit "$status"
}
# count_check NAME VALUE: a number of ops, rounds or launches, or the end.
count_check() {
  case $2 in '' | 0* | *[!0-9]*) die 2 "$1='$2': expected a whole number from 1 on" ;; esac
}
# The script's head comment, which is its usage.
usage() { sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"; }
case " $* " in *" --help "* | *" -h "*) usage && exit 0 ;; esac
mkdir -p "$out" || exit 3

has() { command -v "$1" > /dev/null 2>&1; }

# A reason as a field of CSV.
reason_text() { printf '%s' "$1" | tr ',"\n' ";' "; }

# programs_build PROGRAM...: make build/bench/PROGRAM.
programs_build() {
  for program; do
    make -s -C "$root" "BUILD=$BUILD" "$BUILD/bench/$program" > /dev/null || die 3 "$BUILD/bench/$program cannot be built"
  done
}

# provenance PART COMMAND...: what the rows of a part come from, beside them as PART.meta: lines KEY VALUE.
provenance() {
  part=$1
  shift
  {
    echo "command $*"
    echo "date $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    commit=$(git -C "$root" rev-parse HEAD 2> /dev/null) || commit="not known: no git here"
    git -C "$root" diff --quiet HEAD -- allocators kernels experiments 2> /dev/null || commit="$commit, changed"
    echo "commit $commit"
    echo "processor $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
    echo "cpus $(nproc)"
    echo "kernel $(uname -sr)"
    echo "form ${BENCH_FORM:-alone}"
    echo "load $(cut -d ' ' -f 1 /proc/loadavg)"
  } > "$out/$part.meta"
}

# What stands between fields of a line for `IFS=$fs read`: no blank, so that an empty field stays one.
fs=$(printf '\034')

# allocators [NAME | PATH | NAME=PATH]...: lines "NAME PATH ENV", $fs between; all that the registry has without
# arguments. PATH is the library ("" for what programs are linked with), or "!" and why it cannot be used; ENV what the
# registry sets for it.
allocators() {
  registry=
  if [ $# -eq 0 ]; then
    registry_read
    printf '%s\n' "$registry"
    return
  fi
  for given; do
    case $given in
      *=* | */*)
        library=$(realpath -e "${given#*=}" 2> /dev/null) || die 3 "${given#*=}: no such library"
        case $given in *=*) name=${given%%=*} ;; *) name=$(basename "$given" | sed 's/^lib//; s/\.so.*//') ;; esac
        echo "$name$fs$library$fs"
        ;;
      *)
        registry_read
        printf '%s\n' "$registry" | awk -F "$fs" -v name="$given" '$1 == name { print; found = 1 } END { exit !found }' ||
          die 2 "'$given' is no allocator of the registry and no path: 'ak list allocators' shows their names"
        ;;
    esac
  done
}

registry_read() {
  [ -z "$registry" ] || return 0
  [ -x "$ak" ] || die 3 "$ak is not there: run make"
  registry=$("$ak" list allocators --json | jq -r '.[] | [.name,
      if .trouble != "" then "!" + .trouble elif (.path | test("/libc\\.so")) then "" else .path end,
      (.env // [] | join(" "))] | join("\u001c")')
}
