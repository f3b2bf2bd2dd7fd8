#!/bin/sh
# its own tests of threads, json and forked workers
# needs: /usr/bin/python3
# size: long
# limit: 600
/usr/bin/python3 -c 'import test.test_threading' || exit # package libpython3-testsuite
PYTHONMALLOC=malloc /usr/bin/python3 -m test -w test_threading test_json test_multiprocessing_fork >log 2>&1
status=$?
[ $status -eq 0 ] || tail -n 30 log >&2
grep -E '^(All [0-9]+ tests OK|Tests? result: SUCCESS|Result: SUCCESS)' log | sort
exit $status
