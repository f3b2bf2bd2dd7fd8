#!/bin/sh
# Misses that arithmetic knows (known.c), in the whole simulator: caches, coherence, nodes, both modes. Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

line=64
for words in "mode=weave,quantum=1000" "mode=timed"; do
  mode=${words%%,*} mode=${mode#mode=}
  # what a scan of so many bytes misses, after a first pass
  while read -r bytes passes missed hits cycles; do
    known "$epyc,$words" scan "$bytes" "$passes"
    lines=$((bytes * passes / line))
    # an instruction, and what its read costs beyond a hit of the L1
    [ "$mode" = weave ] || near "timed: a read that $hits serves, cycles" "$(figure took)" "$cycles" 1
    for level in l1 l2 l3; do
      case ",$missed," in
        *",$level,"*) near "$mode: a scan of $bytes B, misses of $level" "$(figure ${level}_miss)" $lines 1 ;;
        *) below "$mode: a scan of $bytes B, which $hits holds, misses of $level" "$(figure ${level}_miss)" $((lines / 100)) ;;
      esac
    done
  done <<'SCANS'
16384 40 - L1 1
262144 4 l1 L2 11
8388608 1 l1,l2 L3 43
67108864 1 l1,l2,l3 memory 317
SCANS
done

# increments of a word that all share, of words in one line, of lines apart: 16 threads on one node
ops=20000 threads=16
known "$epyc,mode=weave,quantum=1000" atomic $threads $ops
near "a word that $threads threads increment: a coherence miss each, true sharing" "$(figure true_sharing)" $((threads * ops)) 1
below "and no false sharing" "$(figure false_sharing)" $((threads * ops / 100))
below "on one node: no transfer between nodes" "$(figure cross_node)" $((threads * ops / 1000))
known "$epyc,mode=weave,quantum=1000" line 8 $ops
near "8 words of one line: false sharing at each increment" "$(figure false_sharing)" $((8 * ops)) 5
below "and no true sharing" "$(figure true_sharing)" $((8 * ops / 100))
known "$epyc,mode=weave,quantum=1000" padded 64 $ops
below "64 lines: no false sharing" "$(figure false_sharing)" $((64 * ops / 1000))
below "and no true sharing" "$(figure true_sharing)" $((64 * ops / 1000))
# 4 threads on 4 nodes: whoever had the line before was elsewhere; 8 on 4: 6 of 7 were
known "$epyc,mode=weave,quantum=1000" atomic 4 $ops 16
near "4 threads on 4 nodes: each transfer is between nodes" "$(figure cross_node)" "$(figure true_sharing)" 1
known "$epyc,mode=weave,quantum=1000" atomic 8 $ops 8
above "8 threads on 4 nodes: 3 in 4 at least are" "$(figure cross_node)" $(($(figure true_sharing) * 3 / 4))

# no order that depends on the host
is "the order was the simulator's" "$(figure stirred)" 0
cp "$dir/figures" "$dir/before"
known "$epyc,mode=weave,quantum=1000" atomic 8 $ops 8
check "the same again, to the last count" cmp "$dir/before" "$dir/figures"
known "$epyc,mode=weave,quantum=1000,seed=2" atomic 8 $ops 8
# shellcheck disable=SC2016 # for the inner shell
check "another seed, another order" sh -c '! cmp -s "$0" "$1"' "$dir/before" "$dir/figures"

# the end of one thread is that of all, and is told as it was
for mode in weave timed; do
  known "$epyc,mode=$mode" fault 8 100000
  is "$mode: a fault among threads at work ends the program, by its signal" $? 139
  known "$epyc,mode=$mode" abort 8 100000
  is "$mode: so does an abort" $? 134
done

# what a wait costs: a lock is held for 500 instructions, and all want it again 100 instructions later, so that the whole
# takes as many critical sections as there are, each with a hand-over
hold=500 think=100 ops=500
back=60 # the line is taken from those that look at it: a transfer, beyond a hit of the L1
for n in 2 8 16; do
  known "$epyc,mode=timed" lock $n $ops
  each=$(($(figure span) / (n * ops)))
  above "a lock that $n threads want: no two hold it at once, cycles a critical section" $each $hold
  below "and it does not wait for much else" $each $((hold * 3 / 2))
  near "all that its threads do is to wait for it, to hold it, to give it back and to come again, cycles" \
    $(($(figure took) + hold + back + think)) $(($(figure cycles) / (n * ops))) 2
done
# the slack is no part of the result: half of it changes what a lock costs by less than 5 %, on the mean of some seeds
for n in 4 16; do
  for slack in 50 25; do
    for seed in 1 2 3; do
      known "$epyc,mode=timed,quantum=$slack,seed=$seed" lock $n $ops
      figure span
    done > "$dir/spans"
    eval "slack$slack=\$(awk -v all=$((3 * n * ops)) '{ sum += \$1 } END { if (NR == 3) printf \"%.0f\", sum / all }' \"\$dir/spans\")"
  done
  # shellcheck disable=SC2154 # by eval
  near "$n threads: half the slack, the same, cycles a critical section" "$slack25" "$slack50" 5
done
finish
