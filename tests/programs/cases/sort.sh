#!/bin/sh
# 300,000 lines, parallel
# needs: sort
# size: short
sort --parallel=4 -S 8M -k2,2n -k1,1n "$LINES_FILE" | cksum
