#!/bin/sh
# run.sh [TARGET...]: the conformance tests on other machines (aarch64 and armhf under qemu-user, i386 as it is) and with
# another C library (musl, static). Prints TAP. A target whose compiler or emulator is not installed is a skip.
#
# The emulator cannot do all that a kernel does (limits of memory, forks of many threads, its own memory in RSS). A line
# that fails there with the C library's malloc as well, or that is not reached in time, is therefore a skip; what is known
# to be impossible is in exempt.txt. On i386 and musl, which run without an emulator, every line counts.
set -u

# shellcheck source=../e2e/fixtures/tap.sh
. "$(dirname "$0")/../e2e/fixtures/tap.sh"
cd "$root" || exit 3
here=$root/tests/cross

LIMIT=300 # seconds for one test

# Sets gcc, emulator and prefix (of the target's C library); false for a name that is no target.
choose() {
  emulator='' prefix=''
  case $1 in
    aarch64) gcc=aarch64-linux-gnu-gcc emulator=qemu-aarch64 ;;
    armhf) gcc=arm-linux-gnueabihf-gcc emulator=qemu-arm ;;
    i386) gcc=i686-linux-gnu-gcc ;;
    musl) gcc=musl-gcc ;;
    *) return 1 ;;
  esac
  [ -z "$emulator" ] || prefix=/usr/${gcc%-gcc}
}

# run LIBRARY PROGRAM: a test on the target. The emulator announces each core that it wrote for an aborted program, which
# the tests of misuse would read: from /proc it can write none.
# shellcheck disable=SC3045 # every shell here has ulimit -c
run() {
  (
    if [ -n "$emulator" ]; then
      cd /proc && ulimit -c unlimited 2>/dev/null
      exec timeout -k 5 $LIMIT "$emulator" -L "$prefix" ${1:+-E LD_PRELOAD="$1"} "$2"
    fi
    ulimit -c 0
    exec timeout -k 5 $LIMIT env ${1:+LD_PRELOAD="$1"} "$2"
  ) </dev/null
}

# Adds a test's lines to ours: $1 the name to show, $2 its output, $3 its status, $4 the file of lines that fail without
# the library as well, $5 target, $6 test. Numbers within lines differ between runs and are not compared.
count_lines() {
  awk -v name="$1" -v status="$3" -v known="$4" -v target="$5" -v test="$6" -v checks="$checks" '
    function bare(line) { sub(/^(not )?ok [0-9]+ - /, "", line); sub(/ # SKIP.*/, "", line); gsub(/[0-9]+/, "N", line); return line }
    function exempt(line, i) { for (i = 1; i <= exempts; i++) if (line ~ pattern[i]) return reason[i]; return "" }
    FILENAME == known { bad[$0] = 1; next }
    FILENAME ~ /exempt[.]txt$/ {
      if ($0 !~ /^#/ && $1 ~ "(^|,)" target "(,|$)" && $2 == test) {
        pattern[++exempts] = $3; reason[exempts] = $0
        sub(/^[^ ]+ +[^ ]+ +[^ ]+ +/, "", reason[exempts])
      }
      next
    }
    /^(not )?ok / {
      seen++
      text = $0; sub(/^(not )?ok [0-9]+ - /, "", text)
      if (/^ok/) { printf "ok %d - %s: %s\n", ++checks, name, text; next }
      why = exempt(text)
      if (why == "" && bare($0) in bad) why = "fails under the emulator with the C library as well"
      if (why != "") { printf "ok %d - %s: %s # SKIP %s\n", ++checks, name, text, why; skipped++ }
      else { printf "not ok %d - %s: %s\n", ++checks, name, text; failed++ }
    }
    /^1\.\.[0-9]+/ { plan = substr($0, 4) + 0 }
    END {
      if (plan == 0 && "unfinished" in bad)
        printf "ok %d - %s: the lines after these %d # SKIP the emulator does not get there with the C library either\n", ++checks, name, seen
      else if (plan == 0 || seen < plan || (status != 0 && failed + skipped == 0))
        printf "not ok %d - %s: ended with status %d after %d results\n", ++checks, name, status, seen
    }' "$4" "$here/exempt.txt" "$2"
}

one_target() {
  target=$1
  built=$build/cross/$target
  for need in $gcc $emulator; do
    lacks "$need" || continue
    skip "$target" "$lacking"
    return
  done
  if ! make --no-print-directory -f tests/cross/cross.mk -k -j2 TARGET="$target" BUILD="$BUILD" >"$dir/build" 2>&1; then
    checks=$((checks + 1))
    failed=1
    echo "not ok $checks - $target: tlfl and the conformance tests build"
    grep -E 'error|undefined|multiple|\*\*\*' "$dir/build" | head -n 20 | sed 's/^/#   /'
  fi
  awk -v t="$target" '$1 ~ "(^|,)" t "(,|$)" && $3 == "." { name = $2; sub(/^[^ ]+ +[^ ]+ +[^ ]+ +/, ""); print name, $0 }' \
    "$here/exempt.txt" >"$dir/exempt"
  while read -r name why; do
    skip "$target: $name" "$why"
  done <"$dir/exempt"
  for source in tests/conformance/*.c; do
    test=$(basename "$source" .c)
    grep -q "^$test " "$dir/exempt" && continue
    if [ "$target" = musl ]; then
      set -- "$built/$test" "$built/$test"-*
    else
      set -- "$built"/libtlfl*.so
    fi
    : >"$dir/known"
    if [ -n "$emulator" ] && [ -x "$built/$test" ]; then
      run "" "$built/$test" >"$dir/plain" 2>/dev/null
      sed -n 's/^not ok [0-9]* - //p' "$dir/plain" | sed 's/[0-9][0-9]*/N/g' >"$dir/known"
      grep -q '^1\.\.' "$dir/plain" || echo unfinished >>"$dir/known"
    fi
    for thing; do
      [ -x "$thing" ] && [ -x "$built/$test" ] || continue
      case $target in
        musl) run "" "$thing" >"$dir/out" 2>"$dir/said" ;;
        *) run "$thing" "$built/$test" >"$dir/out" 2>"$dir/said" ;;
      esac
      status=$?
      count_lines "$target $test $(basename "$thing" .so)" "$dir/out" $status "$dir/known" "$target" "$test" >"$dir/lines"
      cat "$dir/lines"
      checks=$((checks + $(grep -c . "$dir/lines")))
      if grep -q '^not ok' "$dir/lines"; then
        failed=1
        head -n 5 "$dir/said" | sed 's/^/#   /'
      fi
    done
  done
}

[ $# -gt 0 ] || set -- aarch64 armhf i386 musl
for target; do
  choose "$target" || die 2 "no target '$target': expected aarch64, armhf, i386 or musl"
done
for target; do
  choose "$target"
  one_target "$target"
done
finish
