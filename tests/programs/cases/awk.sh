#!/bin/sh
# associative arrays
# needs: awk
# size: short
awk '{ n[$2] += $1; s[$2] = s[$2] "," $1 } END { for (k in n) print k, n[k], length(s[k]) }' "$LINES_FILE" | sort
