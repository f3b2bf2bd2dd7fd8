# common.sh - to be sourced by the parts of the benchmark: what experiments/common.sh has, $out (where rows go), and the
# functions ops_check, reason_text, programs_build, provenance, allocators.
# shellcheck shell=sh

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 3
# shellcheck disable=SC2034 # for experiments/common.sh
me=bench
# shellcheck source=../common.sh
. "$root/experiments/common.sh"
# shellcheck disable=SC2034 # for the script that sources this
ak=$build/bin/ak
out=${BENCH_OUT:-$build/bench}
mkdir -p "$out" || exit 3

BATCH=256 # of loops.c
# ops_check OPS: a number of ops that the loops can do, or the end.
ops_check() {
  count_check OPS "$1"
  [ $(($1 % BATCH)) -eq 0 ] || die 2 "OPS='$1': the counted loops take a multiple of $BATCH"
}

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
  need jq
  [ -x "$ak" ] || die 3 "$ak is not there: run make"
  registry=$("$ak" list allocators --json | jq -r '.[] | select(.linked | not) | [.name,
      if .trouble != "" then "!" + .trouble elif (.path | test("/libc\\.so")) then "" else .path end,
      (.env // [] | join(" "))] | join("\u001c")') && [ -n "$registry" ] || die 3 "ak list allocators names none"
}
