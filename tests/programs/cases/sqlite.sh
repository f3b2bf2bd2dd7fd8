#!/bin/sh
# tables, joins, an index, text search, integrity
# needs: sqlite3
# size: short
rows=50000
[ -z "$FULL" ] || rows=1000000
sqlite3 base.db <<SQL
pragma journal_mode = wal;
create table t(a integer primary key, b integer, c text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < $rows)
  insert into t select i, i * 7919 % 1009, printf('%d-%x', i * 31 % 997, i * i) from n;
create index tb on t(b, c);
create virtual table f using fts5(c);
insert into f select c from t where a % 50 = 0;
select count(*), sum(b), sum(length(c)) from t;
select b, count(*), group_concat(a) from (select * from t where a <= 5000 order by a) group by b order by b limit 50;
select count(*) from t x join t y on x.b = y.b and x.a < y.a where x.a < 500 and y.a < 5000;
delete from t where b % 3 = 0;
update t set c = c || c where b % 5 = 0;
vacuum;
select count(*) from f where f match '"7"* OR "9"*';
select count(*), sum(length(c)), max(c), min(c) from t;
select json_group_array(json_object('b', b, 'n', n)) from (select b, count(*) n from t group by b order by b limit 30);
pragma integrity_check;
SQL
