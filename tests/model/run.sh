#!/bin/sh
# run.sh [--long]: the model of the heaps (heaps.pml) checked by spin in every interleaving, and with an error planted, which
# spin has to find. Prints TAP. Small instances, each in seconds; larger ones with --long (minutes, 3 GB each of two at once).
#
# An instance is: heaps, spans, granules, blocks a span; then the threads, each by what it may do at most so many times:
# mallocs, frees, ticks, thefts, trims, lives, late calls (heaps.pml, `thread`).
set -u

# shellcheck source=../e2e/fixtures/tap.sh
. "$(dirname "$0")/../e2e/fixtures/tap.sh"
model=$root/tests/model/heaps.pml
long=${1:-}
case $long in '' | --long) ;; *) echo "run.sh: unknown option '$long': expected --long" >&2; exit 2 ;; esac

DEPTH=200000 # steps of the longest run that is followed
JOBS=2

if [ -z "$long" ]; then
  memory=1000 # MB an instance
  optimise=-O0 # the verifier takes longer to compile than to run
  instances='
  thief,_owner_that_frees       2 2 2 2  3,1,0,0,0,0,0  1,2,0,1,0,0,0
  thief,_owner_that_goes_on     2 2 2 2  5,0,1,0,0,0,0  0,2,0,1,0,0,0
  thief,_owner_that_ends        2 2 2 2  3,0,0,0,0,1,0  0,2,0,1,0,0,0
  thief_with_a_tick             2 2 2 2  3,0,0,0,0,1,0  0,2,1,1,0,0,0
  two_frees_at_once             3 2 2 2  3,0,0,0,0,0,0  0,1,0,0,0,0,0  0,1,0,1,0,0,0
  an_outbox_for_two             3 2 2 2  1,0,0,0,0,0,0  1,0,0,0,0,0,0  0,2,0,0,0,0,0
  one_thread,_three_spans       1 3 3 2  6,6,0,0,0,0,0
  adoption,_and_a_tick          2 2 2 2  2,1,1,0,0,1,0  2,1,0,0,0,0,0
  trim_beside_a_new_thread      2 2 2 2  1,1,0,0,1,0,0  2,1,0,0,0,1,0
  trim_beside_a_full_span       2 2 2 2  3,1,0,0,0,0,0  0,2,0,0,1,0,0
  thief_that_trims              2 2 2 2  3,0,0,0,0,1,0  0,2,0,1,1,0,0
  trim_beside_a_shelf           2 2 2 2  3,2,0,0,0,0,0  0,0,0,0,1,0,0
  calls_after_the_last_heap     2 2 2 2  2,1,0,0,0,0,1  1,1,0,0,0,0,1'
else
  memory=5000
  optimise=-O2
  instances='
  thief,_owner_with_two_lives   2 2 2 2  3,1,0,0,0,1,0  1,2,0,1,0,0,0
  thief_and_trim                2 2 2 2  3,1,0,0,1,0,0  1,2,0,1,0,1,0
  adoption,_tick,_two_lives     2 2 2 2  2,1,1,0,0,1,0  2,2,0,1,0,1,0
  three_threads,_late_calls     3 2 2 2  2,0,0,0,0,0,0  1,1,0,1,0,0,0  0,2,0,0,0,1,1
  three_threads,_a_trim         3 2 2 2  3,0,0,0,0,0,0  0,2,0,0,0,1,0  1,0,0,0,1,0,0
  three_blocks_a_span           2 2 2 3  4,1,0,0,0,1,0  1,3,0,1,0,0,0
  three_spans                   2 3 3 2  5,0,0,0,0,0,0  1,3,0,1,0,0,0'
fi

# An error each, and the smallest instance that shows it.
bugs='
  POP        2 2 2 2  3,1,0,0,0,0,0  1,2,0,1,0,0,0  the_list_is_popped_from,_block_by_block
  CURRENT    2 2 2 2  3,1,0,0,0,1,0  1,2,0,1,0,0,0  a_thief_takes_spans_in_any_state
  LOOKUP     2 2 2 2  2,1,1,0,0,1,0  2,1,0,0,0,0,0  who_takes_the_list_does_not_ask_for_the_owner_again
  LATE       2 2 2 2  1,1,0,0,1,0,0  2,1,0,0,0,1,0  a_heap_is_taken_over_and_still_shows_as_idle
  SHELF      2 2 2 2  3,1,0,0,0,1,0  1,2,0,1,0,0,0  a_shelf_is_read_and_written,_not_exchanged
  STRUCTURE  2 2 2 2  3,1,0,0,0,1,0  1,2,0,1,0,0,0  a_thief_gives_the_structure_away_as_well'

command -v spin > /dev/null || { skip "model of the heaps" "spin is not installed"; finish; }
command -v "${CC:-cc}" > /dev/null || { skip "model of the heaps" "${CC:-cc} is not installed"; finish; }

# explore FOLDER HEAPS SPANS GRANULES CAPACITY THREAD...: writes FOLDER/said, of spin's verifier
cat > "$dir/explore" <<'EOF'
folder=$1 heaps=$2 spans=$3 granules=$4 capacity=$5
shift 5
cd "$folder" || exit 3
start=
for thread; do
  start="$start run thread(${thread%,*},false,${thread##*,});"
done
{
  printf '#define %s\n' "HEAPS $heaps" "SPANS $spans" "GRANULES $granules" "CAPACITY $capacity" "KEEP true" "GIVE true" \
    "START $start" "$(cat bug)"
  cat "$MODEL"
} > model.pml
{
  spin -a model.pml &&
    ${CC:-cc} $OPTIMISE -w -DSAFETY -DCOLLAPSE -DMEMLIM="$MEMORY" -o pan pan.c &&
    ./pan -m"$DEPTH" -w24
} > said 2>&1
rm -f pan pan.*
EOF
export MODEL="$model" OPTIMISE=$optimise MEMORY=$memory DEPTH

jobs_of() { # jobs_of KIND LIST: a line `FOLDER SIZES... THREADS...` for each instance, and its folder
  printf '%s\n' "$2" | while read -r name rest; do
    [ -n "$name" ] || continue
    mkdir -p "$dir/$1/$name"
    case $1 in bug) echo "BUG_$name 1" ;; *) echo "SOUND 1" ;; esac > "$dir/$1/$name/bug"
    words=
    for word in $rest; do
      case $word in
        *[a-z]*) printf '%s\n' "$word" | tr _ ' ' > "$dir/$1/$name/what" ;;
        *) words="$words $word" ;;
      esac
    done
    echo "$dir/$1/$name$words"
  done
}
{
  jobs_of sound "$instances"
  [ -n "$long" ] || jobs_of bug "$bugs"
} | xargs -L 1 -P $JOBS sh "$dir/explore"

# complete FOLDER: all states were visited, none is wrong
complete() {
  cp "$1/said" "$dir/said"
  grep -q 'errors: 0$' "$1/said" && ! grep -Eq 'max search depth too small|Search not completed|out of memory' "$1/said"
}

found() {
  cp "$1/said" "$dir/said"
  grep -q '^pan:1: assertion violated' "$1/said"
}

printf '%s\n' "$instances" | while read -r name _; do [ -z "$name" ] || echo "$name"; done > "$dir/names"
while read -r name; do
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$dir/sound/$name/said")
  check "$(printf '%s' "$name" | tr _ ' '): ${states:-no} states" complete "$dir/sound/$name"
done < "$dir/names"

# What no instance takes is not checked: such steps. But for a lock that is held already, and a compare-and-swap
# that fails, which need not be wherever one stands.
not_taken() {
  for said in "$dir"/sound/*/said; do
    awk '/^unreached in proctype thread/ { on = 1 } /^unreached in init/ { on = 0 } on && /state/' "$said"
  done | grep -v -e '"depth = 1"' -e '"next\[.*\] = head"' | sort | uniq -c |
    awk -v all="$(wc -l < "$dir/names")" '$1 == all' | grep .
}
if [ -z "$long" ]; then
  all_taken() { ! not_taken; }
  check "every step of the model is taken in some instance" all_taken
  for bug in "$dir"/bug/*; do
    check "planted, and found: $(cat "$bug/what")" found "$bug"
  done
fi
finish
