#!/bin/sh
# lint.sh: the linters that are installed, over the whole tree: clang-tidy and cppcheck for C, shellcheck for scripts, lintr
# for R. Prints findings only, one line for a linter that is missing, and ends with 1 where there is a finding.
#
#   tests/lint.sh [clang-tidy | cppcheck | shellcheck | lintr ...]    the ones named; all without arguments
set -u

cd "$(dirname "$0")/.." || exit 3
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
includes='-Ikernels -Ikernels/harness -Ikernels/counters -Iexperiments/runner -Iexperiments/trace -Iallocators/tlfl'
findings=0
said=$(mktemp)
trap 'rm -f "$said"' EXIT INT TERM

# Source files of a kind that git knows or could know; what is ignored (the build) is not looked at.
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

wanted() {
  case " $chosen " in
    *" $1 "*) ;;
    *) return 1 ;;
  esac
  command -v "${2:-$1}" >/dev/null 2>&1 && return 0
  echo "lint: $1 is not installed: left out"
  return 1
}

verdict() { # verdict NAME: prints what a linter said, if anything
  [ -s "$said" ] || return
  echo "lint: $1:"
  cat "$said"
  findings=1
}

lint_clang_tidy() {
  # An optional backend can be read only where its library is.
  for backend in papi likwid; do
    [ -e "/usr/include/$backend.h" ] || echo "kernels/counters/$backend.c"
  done >"$said"
  # shellcheck disable=SC2016 # expands in the inner shell
  files 'kernels/*.c' 'experiments/*.c' 'allocators/*.c' | grep -vxFf "$said" |
    xargs -P "$jobs" -n 4 sh -c 'flags=$1; shift; clang-tidy --quiet "$@" -- $flags 2>/dev/null' sh \
      "-std=gnu11 -D_GNU_SOURCE -DLIKWID_PERFMON $includes" >"$said.all"
  grep -v '^$' "$said.all" >"$said"
  rm -f "$said.all"
  verdict clang-tidy
}

# Not the conformance tests, which misuse malloc on purpose; nor comparisons of the ends of a linker section, by which the
# runner finds its commands.
lint_cppcheck() {
  # shellcheck disable=SC2046,SC2086 # lists of words
  cppcheck --quiet -j "$jobs" --std=c11 --inline-suppr --enable=warning,performance,portability \
    --suppress=missingInclude --suppress=missingIncludeSystem --suppress=unknownMacro \
    --suppress=comparePointers:experiments/runner/main.c \
    --template='{file}:{line}: {severity}: {message} [{id}]' -D_GNU_SOURCE $includes \
    $(files 'kernels/*.c' 'experiments/*.c' 'allocators/*.c' 'tests/unit/*.c' 'tests/tlfl/*.c') >"$said" 2>&1
  verdict cppcheck
}

# Left out: SC2317 takes functions that are called by name (check WHAT FUNCTION) for unreachable; SC2015 and SC2016 are
# advice on what is meant so.
lint_shellcheck() {
  # shellcheck disable=SC2046 # a list of words
  shellcheck -f gcc -e SC2317,SC2015,SC2016 $(files '*.sh' '.ci/run') >"$said" 2>&1
  verdict shellcheck
}

lint_lintr() {
  # shellcheck disable=SC2046,SC2016 # a list of words; R's own variables
  Rscript --vanilla -e '
    suppressMessages(library(lintr))
    rules <- linters_with_defaults(line_length_linter(130), object_name_linter = NULL, cyclocomp_linter = NULL,
      object_usage_linter = NULL, commented_code_linter = NULL)
    for (f in commandArgs(TRUE)) for (l in lint(f, linters = rules))
      cat(sprintf("%s:%d: %s [%s]\n", f, l$line_number, l$message, l$linter))' \
    $(files '*.R') >"$said" 2>/dev/null
  verdict lintr
}

chosen=${*:-clang-tidy cppcheck shellcheck lintr}
for name in $chosen; do
  case $name in
    clang-tidy | cppcheck | shellcheck | lintr) ;;
    *)
      echo "lint: unknown linter '$name': expected clang-tidy, cppcheck, shellcheck or lintr" >&2
      exit 2
      ;;
  esac
done
wanted shellcheck && lint_shellcheck
wanted cppcheck && lint_cppcheck
wanted lintr Rscript && lint_lintr
wanted clang-tidy && lint_clang_tidy
exit $findings
