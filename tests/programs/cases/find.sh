#!/bin/sh
# with xargs
# needs: find xargs
# size: short
find "$TREE" -name '*.[ch]' | sort | xargs wc -c
