#!/bin/sh
# a cluster of its own under pgbench: the books balance, a dump is the same
# needs: postgres initdb pgbench psql pg_dump
# size: long
# limit: 600
# The server refuses root; GUARD is how to be somebody else.
transactions=2000
# shellcheck disable=SC2086 # GUARD is a list of words
as() { $GUARD "$@"; }
export PGHOST="$PWD" PGUSER=tester PGDATABASE=postgres
as initdb -D "$PWD/data" -U tester -A trust --no-sync --locale=C -E UTF8 >log 2>&1 || { tail log >&2; exit 1; }
# shellcheck disable=SC2086
$GUARD postgres -D "$PWD/data" -k "$PWD" -c listen_addresses= -c shared_buffers=32MB -c fsync=off >server.log 2>&1 &
server=$!
trap 'kill -INT "$server" 2>/dev/null' EXIT
for _ in $(seq 1 200); do
  psql -Atc 'select 1' >/dev/null 2>&1 && break
  sleep 0.1
done
quiet() { "$@" >log 2>&1 || { tail -n 20 log server.log >&2; exit 1; }; }
quiet pgbench -i -q -s 2
quiet pgbench -c 8 -j 4 -t $transactions
quiet pgbench -c 4 -j 2 -S -M prepared -t $transactions
psql -At <<SQL
select count(*) from pgbench_history;
select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history),
       (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history),
       (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history);
create table t as select i, md5(i::text) m, repeat(md5((i * 7)::text), i % 50) r from generate_series(1, 50000) i;
create index on t(m);
select count(*), sum(length(r)), min(m), max(m) from t;
select substr(m, 1, 2), count(*), md5(string_agg(r, '' order by i)) from t group by 1 order by 1;
select jsonb_agg(jsonb_build_object('i', i, 'm', m) order by i) ->> 777 from t;
vacuum full analyze t;
SQL
pg_dump -t t | grep -v -E '^(--|\\(un)?restrict)' | cksum
kill -INT "$server"
wait "$server"
status=$?
trap - EXIT
exit $status
