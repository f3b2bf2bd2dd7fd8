#!/bin/sh
# this suite's own tests of the analysis
# needs: Rscript
# size: long
# limit: 600
export LC_ALL=C.UTF-8
cd "$TREE" || exit
Rscript tests/R/run.R >"$OLDPWD/log" 2>&1
status=$?
[ $status -eq 0 ] || { grep '^not ok' "$OLDPWD/log"; tail -n 3 "$OLDPWD/log"; } >&2
grep -v '^#' "$OLDPWD/log"
exit $status
