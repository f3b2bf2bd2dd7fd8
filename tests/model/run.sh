#!/bin/sh
# run.sh [--long]: the models of the heaps (heaps.pml) and of the lock (lock.pml), checked by spin in every interleaving, and
# with an error planted, which spin has to find. Prints TAP. Small instances, each in seconds; larger ones with --long
# (minutes, 3 GB each of two at once).
#
# An instance of the heaps is: heaps, spans, granules, blocks a span; then the threads, each by what it may do at most so
# many times: mallocs, frees, ticks, thefts, trims, lives, late calls (heaps.pml, `thread`).
set -u

# shellcheck source=../e2e/fixtures/tap.sh
. "$(dirname "$0")/../e2e/fixtures/tap.sh"
here=$root/tests/model
long=${1:-}
case $long in '' | --long) ;; *) die 2 "unknown option '$long': expected --long" ;; esac
[ $# -le 1 ] || die 2 "'$2': expected --long alone"

DEPTH=200000 # steps of the longest run that is followed
JOBS=2

if [ -z "$long" ]; then
  memory=1000 # MB an instance
  optimise=-O0 # the verifier takes longer to compile than to run
  turns="3 2" # threads of the lock, and turns of each
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
  turns="4 2"
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

skip_without "models of the heaps and of the lock" spin "${CC:-cc}"

# instance FOLDER MODEL DEFINITION...: writes FOLDER/model.pml
instance() {
  mkdir -p "$dir/$1"
  file=$dir/$1/model.pml
  model=$here/$2
  shift 2
  printf '#define %s\n' "$@" | cat - "$model" > "$file"
}

# heaps_instance FOLDER BUG HEAPS SPANS GRANULES CAPACITY THREAD...
heaps_instance() {
  folder=$1 bug=$2 sizes="$3 $4 $5 $6"
  shift 6
  start=
  for thread; do
    start="$start run thread(${thread%,*},false,${thread##*,});"
  done
  # shellcheck disable=SC2086 # four words
  set -- $sizes
  instance "$folder" heaps.pml "HEAPS $1" "SPANS $2" "GRANULES $3" "CAPACITY $4" "KEEP true" "GIVE true" "START $start" "$bug"
}

# lock_instance FOLDER BUG
lock_instance() {
  instance "$1" lock.pml "THREADS ${turns% *}" "TURNS ${turns#* }" "$2"
}

printf '%s\n' "$instances" | grep . > "$dir/instances"
while read -r name rest; do
  # shellcheck disable=SC2086 # words
  heaps_instance "sound/$name" "SOUND 1" $rest
done < "$dir/instances"
lock_instance sound/lock "SOUND 1"
if [ -z "$long" ]; then
  printf '%s\n' "$bugs" | grep . > "$dir/bugs"
  while read -r name rest; do
    # shellcheck disable=SC2086 # words; the last says what it is
    heaps_instance "bug/${rest##* }" "BUG_$name 1" ${rest% *}
  done < "$dir/bugs"
  lock_instance "bug/who_was_woken_forgets_the_other_sleepers" "BUG_WAKE 1"
  lock_instance "bug/a_sleeper_does_not_compare_the_word" "BUG_COMPARE 1"
fi

# What spin's verifier says of each: FOLDER/said.
export OPTIMISE="$optimise" MEMORY="$memory" DEPTH
for folder in "$dir"/sound/* "$dir"/bug/*; do
  [ ! -d "$folder" ] || echo "$folder"
done | xargs -n 1 -P $JOBS sh -c '
  cd "$1" || exit 3
  {
    spin -a model.pml &&
      "${CC:-cc}" "$OPTIMISE" -w -DSAFETY -DCOLLAPSE -DMEMLIM="$MEMORY" -o pan pan.c &&
      ./pan -m"$DEPTH" -w24
  } > said 2>&1
  rm -f pan pan.*' sh

# complete FOLDER: all states were visited, none is wrong
complete() {
  cp "$1/said" "$dir/said"
  grep -q 'errors: 0$' "$1/said" && ! grep -Eq 'max search depth too small|Search not completed|out of memory' "$1/said"
}

found() {
  cp "$1/said" "$dir/said"
  grep -Eq '^pan:1: (assertion violated|invalid end state)' "$1/said"
}

words() { basename "$1" | tr _ ' '; }

for folder in "$dir"/sound/*; do
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$folder/said")
  check "$(words "$folder"): ${states:-no} states" complete "$folder"
done

# What no instance takes is not checked. But for a lock that is held already, and a compare-and-swap
# that fails, which need not be wherever one stands.
not_taken() {
  while read -r name _; do
    awk '/^unreached in proctype thread/ { on = 1 } /^unreached in init/ { on = 0 } on && /state/' "$dir/sound/$name/said"
  done < "$dir/instances" | grep -v -e '"depth = 1"' -e '"next\[.*\] = head"' | sort | uniq -c |
    awk -v all="$(wc -l < "$dir/instances")" '$1 == all' | grep .
}
all_taken() { ! not_taken; }
if [ -z "$long" ]; then
  check "every step of the heaps' model is taken in some instance" all_taken
  for folder in "$dir"/bug/*; do
    check "planted, and found: $(words "$folder")" found "$folder"
  done
fi
finish
