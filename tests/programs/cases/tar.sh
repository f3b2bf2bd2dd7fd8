#!/bin/sh
# packs, with gzip, and lists
# needs: tar gzip
# size: short
tar -C "$TREE" --sort=name --mtime=@0 --owner=0 --group=0 -czf - tests | tar -tzf -
