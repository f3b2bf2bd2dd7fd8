#!/bin/sh
# reads this project's rules
# needs: make
# size: short
make -C "$TREE" -s -n help BUILD=b
rm -rf "$TREE/b"
