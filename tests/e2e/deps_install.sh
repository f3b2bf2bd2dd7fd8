#!/bin/sh
# experiments/deps.sh against made-up systems: a PATH that holds nothing but fakes of dpkg-query, apt-get, apt-cache, sudo
# and id, and links to what a shell script needs. Installs nothing. Prints TAP.
# shellcheck disable=SC2317,SC2016 # functions that check calls by name; text for fakes
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
bin=$dir/bin
own=$(cksum < "$(command -v sleep)")

fake() { # fake NAME BODY: in place of a link, never through it, which would overwrite the system's own
  rm -f "$bin/$1"
  printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
  chmod +x "$bin/$1"
}

# A system: nothing installed, root, apt that installs whatever it is asked, except names in $dir/refused.
fresh_system() {
  rm -rf "$bin" "$dir/build" "$dir"/apt.* "$dir"/installed "$dir"/refused
  mkdir -p "$bin"
  for tool in sh sed grep tr cat mkdir rm tail sleep env; do
    ln -s "$(command -v "$tool")" "$bin/$tool" 2>/dev/null || true
  done
  : >"$dir/installed"
  : >"$dir/refused"
  : >"$dir/apt.calls"
  fake true 'exit 0'
  fake id 'echo 0'
  fake dpkg-query 'sed "s/^/installed:/" '"$dir"'/installed | tr "\n" " "'
  fake apt-cache 'case $2 in *3 | *t64 | libclang-rt-dev | linux-tools-generic) exit 1 ;; esac'
  fake apt-get '
echo "$DEBIAN_FRONTEND apt-get $*" >>'"$dir"'/apt.calls
for a; do [ "$a" = update ] && exit 0; done
seen=no ok=yes
for a; do
  [ "$seen" = yes ] && case $a in -*) ;; *) grep -qx "$a" '"$dir"'/refused && { echo "E: Unable to locate package $a"; ok=no; } ;; esac
  [ "$a" = install ] && seen=yes
done
[ $ok = yes ] || exit 100
seen=no
for a; do
  [ "$seen" = yes ] && case $a in -*) ;; *) echo "$a" >>'"$dir"'/installed ;; esac
  [ "$a" = install ] && seen=yes
done
exit 0'
}

run() { # run WANTED_RC ARGUMENT...
  wanted=$1
  shift
  env -i PATH="$bin" BUILD="$dir/build" "$root/experiments/deps.sh" "$@" >"$dir/said" 2>&1 </dev/null
  rc=$?
  [ "$rc" -eq "$wanted" ] && return 0
  echo "exit code $rc, not $wanted" >>"$dir/said"
  return 1
}
said() { grep -q -- "$1" "$dir/said"; }
called() { grep -q -- "$1" "$dir/apt.calls"; }
calls() { [ "$(grep -c . "$dir/apt.calls")" -eq "$1" ]; }
quiet() { ! grep -q . "$dir/said"; }

fresh_system
check "a fresh system gets everything" run 0
check "it said first what it would install" said 'missing, to be installed: gcc g++ make'
check "the lists were updated" called 'noninteractive apt-get .*update'
check "required packages come in one call, without recommendations" called 'install -y --no-install-recommends gcc g++ make libhwloc-dev'
check "apt waits for another one's lock" called 'DPkg::Lock::Timeout=120'
check "of two names the one that apt knows" called 'libmimalloc2.0 '
: >"$dir/apt.calls"
check "a complete system: nothing to do" run 0
check "and nothing said" quiet
check "and apt not called" calls 0
check "--dry-run there" run 0 --dry-run
check "says so" said 'nothing is missing'

fresh_system
check "--dry-run on a fresh system" run 0 --dry-run
check "shows the commands" said 'would run: apt-get install -y --no-install-recommends gcc'
check "and runs none" calls 0
check "--list" run 0 --list
check "gives need, state and reason" said 'libpapi-dev .*optional *missing *hardware counters'
check "--long is another list" run 0 --long --list
check "of programs to preload" said '^redis-server .*required *missing'
check "an unknown argument is wrong usage" run 2 --bogus
check "and is named" said "unknown argument '--bogus'"

fresh_system
echo libmimalloc2.0 >"$dir/refused"
check "an optional package that cannot be installed spoils nothing" run 0
check "it is one warning, with apt's reason" said 'warning: optional package libmimalloc2.0 could not be installed: Unable to locate'
check "the other optional ones are there" grep -qx libjemalloc2 "$dir/installed"
: >"$dir/apt.calls"
check "the next run does not try again" run 0
check "but says what is left out" said 'left out, optional and not available here: libmimalloc2.0'
check "without calling apt" calls 0
: >"$dir/refused"
check "--retry tries again" run 0 --retry
check "and gets it" grep -qx libmimalloc2.0 "$dir/installed"
: >"$dir/apt.calls"
check "after which all is quiet" run 0
check "indeed" quiet

fresh_system
echo gcc >"$dir/refused"
check "a required package that cannot be installed stops" run 3
check "with apt's reason and the log" said 'cannot install gcc .*Unable to locate package gcc.*deps.log'
check "optional ones were not tried" test "$(grep -c . "$dir/apt.calls")" -eq 2

fresh_system
fake apt-get 'echo "x apt-get $*" >>'"$dir"'/apt.calls; echo "E: Failed to fetch: Could not resolve host"; exit 100'
check "without a network it stops" run 3
check "in one line" test "$(grep -c 'cannot install' "$dir/said")" -eq 1 -a "$(grep -c . "$dir/said")" -eq 2
check "that names the cause" said 'apt-get update had failed: Failed to fetch'

fresh_system
fake apt-get 'exit 0'
check "success of apt without the packages is no success" run 3
check "and is said" said 'still missing: gcc'

fresh_system
fake id 'echo 1000'
check "neither root nor sudo" run 3
check "prints the command" said 'apt-get update && apt-get install -y --no-install-recommends gcc'
check "and calls nothing" calls 0
fake sudo '[ "$1" = -n ] && { shift; exec "$@"; }
echo "sudo $*" >>'"$dir"'/apt.calls
exec "$@"'
check "with sudo" run 0
check "apt-get goes through it" called '^sudo env DEBIAN_FRONTEND=noninteractive apt-get'

fresh_system
fake id 'echo 1000'
grep -v '^#' "$root/experiments/packages.txt" | grep ' required ' | sed -e 's/ .*//' -e 's/|.*//' >"$dir/installed"
check "only optional ones missing, and no way to get them" run 0
check "is a line, no failure" said 'optional packages are missing'

fresh_system
rm -f "$bin/apt-get"
check "a system without apt" run 3
check "gets the list by name" said 'libjansson-dev (required): '
env -i PATH="$bin" AK_DEPS=skip "$root/experiments/deps.sh" >"$dir/said" 2>&1
check "and a way round: AK_DEPS=skip" test $? -eq 0

fresh_system
fake sleep ':'
fake apt-get '
echo "x apt-get $*" >>'"$dir"'/apt.calls
n=$(cat '"$dir"'/apt.locked 2>/dev/null || echo 0)
echo $((n + 1)) >'"$dir"'/apt.locked
[ "$n" -lt 2 ] && { echo "E: Could not get lock /var/lib/apt/lists/lock"; exit 100; }
seen=no
for a; do
  [ "$seen" = yes ] && case $a in -*) ;; *) echo "$a" >>'"$dir"'/installed ;; esac
  [ "$a" = install ] && seen=yes
done
exit 0'
check "another process holds the lists: waits and goes on" run 0
check "and says why it waits" said 'another process is using apt'

is "the system's own programs are as they were" "$(cksum < "$(command -v sleep)")" "$own"
finish
