#!/bin/sh
# strings, arrays, many forks
# needs: bash
# size: short
bash -c 'a=(); for i in $(seq 1 3000); do a+=("$i$i"); done
for i in 1 2 3 4 5 6 7 8; do echo $(echo ${a[@]:$i:40} | wc -c); done'
