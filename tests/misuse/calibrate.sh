#!/bin/sh
# calibrate.sh [--doc FILE] [ALLOCATOR | NAME=LIBRARY...]: what each allocator catches of the misuse programs.
#
#   --doc FILE   write the table by category and that of all cases into FILE, between its two marks
#
# Prints the table by category, and writes every outcome to $BUILD/misuse/calibration.csv. Allocators are names of the
# registry, or tcmalloc-debug, scudo and asan: tools for finding bugs, which show that a case can be stopped; all of them
# without any. One that is not installed is named and left out. $RUNS (default 5) is how often a case runs.
# Exit 2 for an option or allocator that there is not, 3 where the programs are not built (make misuse builds them).
set -u

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 3
# shellcheck source=../../experiments/common.sh
. "$root/experiments/common.sh"
here=$root/tests/misuse

doc=
while [ $# -gt 0 ]; do
  case $1 in
    --doc)
      [ $# -gt 1 ] || die 2 "--doc needs a file"
      [ -w "$2" ] || die 2 "--doc: $2 cannot be written"
      doc=$(realpath "$2")
      shift
      ;;
    -*) die 2 "unknown option '$1': expected --doc or --help" ;;
    *) break ;;
  esac
  shift
done

RUNS=${RUNS:-5}
count_check RUNS "$RUNS"
need jq
out=$build/misuse
for source in "$here"/*.c; do
  program=$build/tests/misuse/$(basename "$source" .c)
  [ -x "$program" ] || die 3 "$program is not built: run make misuse"
done
[ -x "$build/bin/ak" ] || die 3 "$build/bin/ak is not built: run make misuse"
mkdir -p "$out" || exit 3
[ $# -gt 0 ] || set -- glibc jemalloc mimalloc tcmalloc tbbmalloc tlfl tlfl-hardened tcmalloc-debug scudo asan

"$build/bin/ak" list allocators --json > "$out/allocators.json" || exit 3
# of NAME FIELD: from the registry
of() { jq -r --arg name "$1" --arg field "$2" '.[] | select(.name == $name and .found) | .[$field]' "$out/allocators.json"; }

for allocator; do
  case $allocator in
    ?*=*) [ -f "${allocator#*=}" ] || die 3 "${allocator#*=}: no such library" ;;
    tcmalloc-debug | scudo | asan) ;;
    *)
      jq -e --arg name "$allocator" 'any(.name == $name)' "$out/allocators.json" > /dev/null ||
        die 2 "unknown allocator '$allocator': expected a name of the registry, tcmalloc-debug, scudo, asan or NAME=LIBRARY"
      ;;
  esac
done

csv=$out/calibration.csv
echo category,case,allocator,version,outcome,detail > "$csv.new"
for allocator; do
  name=${allocator%%=*}
  version=$(of "$name" version)
  case $allocator in
    *=*) library=$(realpath "${allocator#*=}") version= ;;
    glibc) library= ;;
    tcmalloc-debug) library=$(of tcmalloc path | sed 's/\.so.*/_debug.so.4/') ;;
    scudo) library=$(clang -print-file-name="libclang_rt.scudo_standalone-$(uname -m).so" 2> /dev/null) ;;
    asan) library=$(gcc -print-file-name=libasan.so) ;;
    *) library=$(of "$name" path) ;;
  esac
  [ -n "$library" ] || [ "$name" = glibc ] || library=$build/lib/lib$name.so
  if [ -n "$library" ] && [ ! -e "$library" ]; then
    echo "$name: not here, left out"
    continue
  fi
  # The table says nothing about an allocator that does not serve malloc.
  library=$(loadable "$library")
  serves=$(LD_PRELOAD=$library "$build/tests/misuse/rules" --who)
  if [ -n "$library" ] && [ "$(basename "$(readlink -f "$serves")")" != "$(basename "$(readlink -f "$library")")" ]; then
    die 1 "$name: $library does not serve malloc, $serves does"
  fi
  for source in "$here"/*.c; do
    category=$(basename "$source" .c)
    [ "$category" = rules ] || "$build/tests/misuse/$category" --each --runs "$RUNS" ${library:+"$library"} |
      awk -F '\t' -v c="$category" -v a="$name" -v v="$version" \
        '{ printf "%s,%s,%s,%s,%s,\"%s\"\n", c, $1, a, v, $2, $3 }'
  done >> "$csv.new"
done
mv "$csv.new" "$csv"

for source in "$here"/*.c; do
  category=$(basename "$source" .c)
  [ "$category" = rules ] || "$build/tests/misuse/$category" --list | sed "s/^/$category	/"
done > "$out/cases.txt"

# Two tables in Markdown: by category, and every case.
awk -v runs="$RUNS" '
  NR == FNR { split($0, cell, "\t"); key = cell[1] "\t" cell[2]; order[++cases] = key; stop[key] = cell[3]; what[key] = cell[4]; next }
  FNR == 1 { next }
  {
    split($0, cell, ",")
    category = cell[1]; allocator = cell[3]; outcome = cell[5]
    if (!(allocator in place)) { place[allocator] = ++allocators; names[allocators] = allocator; version[allocator] = cell[4] }
    if (!(category in seen)) { seen[category] = 1; categories[++count] = category }
    total[category, allocator]++; total["", allocator]++
    number[category, allocator, outcome]++; number["", allocator, outcome]++
    result[category "\t" cell[2], allocator] = outcome
  }
  function heading(first,   i, line) {
    for (i = 1; i <= allocators; i++) { first = first " " names[i] " |"; line = line "---:|" }
    return first "\n" line
  }
  function row(label, category, kind,   i, text) {
    text = "| " label " |"
    for (i = 1; i <= allocators; i++) text = text " " number[category, names[i], kind] + 0 " |"
    print text
  }
  END {
    text = cases " cases, each " runs " times:"
    for (i = 1; i <= allocators; i++)
      text = text (i > 1 ? "," : "") " " names[i] (version[names[i]] == "" ? "" : " " substr(version[names[i]], 1, 8))
    print text ".\n"
    split(heading("| caught of each category | cases |"), line, "\n")
    print line[1]; print "|---|---:|" line[2]
    for (c = 1; c <= count; c++) {
      label = categories[c]; gsub("_", " ", label)
      row(label " | " total[categories[c], names[1]], categories[c], "caught")
    }
    row("**all** | **" cases "**", "", "caught")
    text = "| **per cent** | |"
    for (i = 1; i <= allocators; i++)
      text = text sprintf(" **%.0f** |", 100 * number["", names[i], "caught"] / total["", names[i]])
    print text
    row("crashed without a word | ", "", "crashed")
    row("harmless | ", "", "harmless")
    row("not offered | ", "", "absent")
    row("missed | ", "", "missed")
    print "\nEvery case: C caught, x crashed, h harmless, - not offered, blank missed.\n"
    split(heading("| case | what | stopped by |"), line, "\n")
    print line[1]; gsub("---:", ":-:", line[2]); print "|---|---|---|" line[2]
    letter["caught"] = "C"; letter["crashed"] = "x"; letter["harmless"] = "h"; letter["absent"] = "-"; letter["missed"] = " "
    for (k = 1; k <= cases; k++) {
      label = order[k]; sub("\t", "/", label)
      text = "| " label " | " what[order[k]] " | " stop[order[k]] " |"
      for (i = 1; i <= allocators; i++) text = text " " letter[result[order[k], names[i]]] " |"
      print text
    }
  }' "$out/cases.txt" "$csv" > "$out/table.md"

# What must stand on the screen: the first table.
sed '/^Every case/,$d' "$out/table.md"
if [ -n "$doc" ]; then
  awk -v table="$out/table.md" '
    /^<!-- end of what make misuse writes -->/ { inside = 0 }
    !inside { print }
    /^<!-- make misuse writes what follows -->/ { inside = 1; while ((getline line < table) > 0) print line }
  ' "$doc" > "$out/doc.md" || die 3 "$out/doc.md cannot be written"
  cmp -s "$out/doc.md" "$doc" || cp "$out/doc.md" "$doc"
fi
if grep -q ',broken,' "$csv"; then
  echo "calibrate.sh: cases that could not be set up: see $csv" >&2
  exit 1
fi
