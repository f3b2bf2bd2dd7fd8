#!/bin/sh
# The kernel item_store: rows that are verified and verification that fails, answers to clients of every kind, what this
# machine may lack, and what is left of its programs when it is killed. Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
kernel=$build/kernels/item_store load=$build/bin/ak-item-load
skip_without "item_store" "$kernel" "$load"
postgres=$(PATH=$PATH:$(printf %s: /usr/lib/postgresql/*/bin) command -v postgres)
if [ -z "$postgres" ]; then
  skip "item_store" "no postgres: make deps-apps installs it"
  finish
fi
# As root the database runs as another user, who has to be able to enter.
store=$(mktemp -d) || die 3 "no folder"
chmod 711 "$store"
live= # the process of a launch that goes on
trap '[ -z "$live" ] || kill -KILL "$live" 2> /dev/null; rm -rf "$dir" "$store"' EXIT
run() { # run OPTIONS...: a launch; its result in $dir/row, what it says in $dir/said
  LD_PRELOAD=$preload TMPDIR=$store timeout 120 "$kernel" "$@" > "$dir/row" 2> "$dir/said"
}
preload=
value() { awk -v name="$1" '$1 == name { print $2; exit }' "$dir/row"; }
says() { grep -qe "$1" "$dir/said" || { cat "$dir/said"; return 1; }; }
nothing_left() { ! ls -d "$store"/ak-service-* 2> /dev/null; }
folders() { find "$store" -maxdepth 1 -name 'ak-service-*' | wc -l; }

# ---- launches that end well ----

verified() { # verified OPTIONS...: ok, all items accepted, copies of a tenth of them and wrong requests refused
  run --ops 600 --duplicates-every 10 --in-flight 5 --warm-items 20 "$@" || { cat "$dir/said"; return 1; }
  echo "$(value status) $(value ops) $(value duplicates_refused) $(value wrong_refused) $(value window3_ops_per_s)"
  [ "$(value status)" = ok ] && [ "$(value ops)" = 600 ] && [ "$(value duplicates_refused)" = 60.000 ] &&
    [ "$(value wrong_refused)" != - ] && [ "$(value window3_ops_per_s)" != - ] && [ "$(value cpu_user_ns)" -gt 0 ]
}
for variant in put insert; do
  check "$variant: rows and answers are verified" verified --variant "$variant"
done
preload=$build/lib/libtlfl.so
check "under tlfl, one thread and one connection to PostgreSQL" verified --expect "$preload" --server-threads 1 \
  --db-connections 1 --windows 4
preload=
check "no folder is left" nothing_left

# ---- clients beside the load: more threads than requests in flight leave room for them ----

# begin OPTIONS...: a launch that goes on; $launch is its process, $folder its folder once it answers
begin() {
  TMPDIR=$store "$@" > "$dir/row" 2> "$dir/said" &
  launch=$!
  live=$launch
  folder=
  for _ in $(seq 600); do
    for folder in "$store"/ak-service-*; do
      [ ! -S "$folder/http" ] || return 0
    done
    sleep 0.05
  done
  echo "it does not begin"
  cat "$dir/said"
  return 1
}
ask() { # ask OPERATION BODY: the status and the body of the answer
  curl -s -m 20 -o "$dir/answer" -w '%{http_code} ' --unix-socket "$folder/http" -H "X-Amz-Target: DynamoDB_20120810.$1" \
    --data-binary "$2" http://store/
  cat "$dir/answer"
}
answers() { # answers STATUS TEXT OPERATION BODY
  ask "$3" "$4" > "$dir/asked"
  case $(cat "$dir/asked") in "$1 "*"$2"*) ;; *) cat "$dir/asked"; return 1 ;; esac
}
stray='{"TableName":"items","ConditionExpression":" attribute_not_exists ( #k ) ","ExpressionAttributeNames":{"#k":"pk"},"Item":{"pk":{"S":"stray"}}}'
statement='{"Statement":"INSERT INTO \"items\" VALUE {'"'pk': ?}"'","Parameters":[{"S":"other"}]}'
if has curl; then
  check "a launch with a client beside its load begins" begin "$kernel" --in-flight 2 --ops 500 --warm-items 8000
  check "a new key is taken" answers 200 '{}' PutItem "$stray"
  check "it is refused again" answers 400 ConditionalCheckFailedException PutItem "$stray"
  check "a new key by a statement is taken" answers 200 '{"Items":[]}' ExecuteStatement "$statement"
  check "it is refused again" answers 400 DuplicateItemException ExecuteStatement "$statement"
  check "JSON that is cut short" answers 400 SerializationException PutItem '{"TableName":"items"'
  check "an unknown operation" answers 400 UnknownOperationException GetItem "$stray"
  check "another table" answers 400 ResourceNotFoundException PutItem "$(echo "$stray" | sed 's/"items"/"others"/')"
  is "a request that is no POST" "$(curl -s -m 20 -o /dev/null -w '%{http_code}' --unix-socket "$folder/http" http://store/)" 405
  wait "$launch"
  code=$? live=
  is "a row that the load did not send fails the launch" "$code" 1
  check "and is named" says 'the row .* was never sent'
else
  skip "clients beside the load" "no curl"
fi

# ---- the check of the rows, by itself ----

check "a launch that goes on begins" begin "$kernel" --ops 1000000 --warm-items 0
refuses() { # refuses TEXT SEED ITEMS
  "$load" check "$folder" "$2" "$3" 0 > "$dir/out" 2> "$dir/said"
  is "the check of rows ends with 1: $1" "$?" 1
  check "and says so" says "$1"
}
for _ in $(seq 200); do
  [ "$("$load" check "$folder" 1 1000000 0 2> /dev/null || :)" = 0 ] || break
done
refuses "never sent" 2 1000000
refuses "never sent" 1 1
refuses "rows in the table" 1 1000000

# ---- killed ----

# Of a folder's programs those that still run; what has ended and waits for its parent does not.
running() { ps -eo pid=,stat=,args= | awk -v folder="$1" 'index($0, folder) && $2 !~ /^Z/ && !/awk/'; }
ended() { # ended PIDS...: none of them runs any more, and none that names the folder
  for _ in $(seq 200); do
    [ -n "$(running "$folder")" ] || ps -o stat= -p "$1" | grep -qv '^Z' || return 0
    sleep 0.05
  done
  running "$folder"
  return 1
}
pids_of() { ps -eo pid=,ppid= | awk -v p="$1" '$1 == p || $2 == p { printf "%s%s", s, $1; s = "," }'; }
segments() { awk -v pid="$1" '$6 == pid || $5 == pid' /proc/sysvipc/shm; }
killed() { # killed SIGNAL PID: then nothing of the launch runs, and no shared memory is left
  first=$(head -n 1 "$folder/data/postmaster.pid")
  all=$(pids_of "$first")
  live=$2
  kill -"$1" "$2"
  wait "$2" 2> /dev/null
  live=
  check "SIG$1: its programs end" ended "$all"
  is "SIG$1: no shared memory is left" "$(segments "$first")" ""
}
killed KILL "$launch"
check "the next launch begins" begin "$kernel" --ops 1000000
is "it has removed what the killed one left" "$(folders)" 1
killed TERM "$launch"
if [ -x "$build/bin/ak" ]; then
  printf 'kernel = item_store\nallocators = glibc\nplacement = none\nops = 1000000\n' > "$dir/endless.sweep"
  rm -rf "$dir/out" "$store"/ak-service-*
  check "a sweep begins" begin "$build/bin/ak" run "$dir/endless.sweep" --out "$dir/out" --reps 1
  killed KILL "$launch"
fi
run --ops 10
check "after the next launch no folder is left" nothing_left

# A kernel that is killed while initdb's own servers run: the runner kills them too, and no file of shared memory stays.
shared() { find /dev/shm -name 'PostgreSQL.*' 2> /dev/null | sort; }
before=$(shared)
TMPDIR=$store "$kernel" --ops 10 > /dev/null 2>&1 &
live=$!
for _ in $(seq 400); do
  own=$(ps -eo pid=,args= | awk '/[p]ostgres --(single|boot)/ { print $1; exit }')
  [ -z "$own" ] || case $(readlink "/proc/$own/cwd" 2> /dev/null) in "$store"/*) break ;; esac
  own=
  sleep 0.01
done
check "initdb runs servers" test -n "$own"
sleep 0.1
[ -z "$own" ] || kill -KILL "$own"
kill -KILL "$live"
wait "$live" 2> /dev/null
live=
is "no file of theirs is left in /dev/shm" "$(shared)" "$before"
for _ in $(seq 200); do
  [ -n "$(running "$store")" ] || break
  sleep 0.05
done
is "initdb ends" "$(running "$store")" ""
run --ops 10
check "its folder goes with the next launch" nothing_left

# ---- what a machine may lack ----

lacking() { # lacking TEXT OPTIONS...: exit 3, status skipped, and the reason
  text=$1
  shift
  run "$@"
  [ $? -eq 3 ] || { cat "$dir/said"; return 1; }
  [ "$(value status)" = skipped ] && says "$text"
}
check "a disk that is too small" lacking 'MB free, about .* MB needed' --ops 1000000000000
cp "$kernel" "$store/item_store"
kernel=$store/item_store
check "no load beside the kernel" lacking 'ak-item-load is not beside' --ops 10
kernel=$build/kernels/item_store
if [ "$(id -u)" = 0 ]; then
  chmod 700 "$store"
  check "a folder that the database's user cannot enter" lacking 'initdb: .*denied' --ops 10
  chmod 711 "$store"
else
  skip "a folder that the database's user cannot enter" "not root: it is this user's"
fi
check "nothing is left of them" nothing_left
refused() { # refused NAME OPTIONS...: exit 2, and the option is named
  name=$1
  shift
  run "$@"
  [ $? -eq 2 ] && says "$name"
}
check "two threads" refused --threads --threads 2
check "a CPU for one worker" refused --placement --placement compact
check "more windows than items" refused --windows --ops 2
finish
