#!/bin/sh
# ak run --counters sim, from the command line to the row: first with a stand-in for QEMU that says how it was started and
# runs the kernel with a fake backend, then with QEMU itself where it is there. Prints TAP.
set -u
# shellcheck source=tests/e2e/fixtures/runner_suite.sh
. "$(dirname "$0")/fixtures/runner_suite.sh"
cd "$dir" || exit 1

mkdir -p "$suite/build/counters" "$suite/experiments/machines" fake
cp -r "$root/kernels/counters/groups" "$suite/build/counters/"
cp "$root"/experiments/machines/*.ini "$suite/experiments/machines/"
: > "$suite/build/lib/simulator.so"
${CC:-cc} -D_GNU_SOURCE -DFAKE_NAME='"sim"' -fPIC -shared -I"$root/kernels/counters" "$root/tests/unit/fakes/backend.c" \
  -o "$suite/build/counters/sim.so" || { echo "Bail out! the fake backend does not build"; exit 1; }

# The stand-in: its arguments, a line each, go to $dir/started; CPUs come from hwloc's variable alone.
cat > fake/qemu-x86_64 <<EOF
#!/bin/sh
[ "\$1" = --version ] && { echo "qemu-x86_64 version \$(cat "$dir/version") (a stand-in)"; exit 0; }
printf '%s\n' "\$@" > "$dir/started"
env > "$dir/environment"
rm -rf "$dir/root"
cp -r "\$2" "$dir/root"
shift 6
while [ "\$1" = -E ]; do export "\$2"; shift 2; done
HWLOC_THISSYSTEM=0 FAKE_sim=\$(cat "$dir/behaviour") exec "\$@"
EOF
chmod +x fake/qemu-x86_64
real_path=$PATH
PATH=$dir/fake:$PATH
export PATH
echo 7.2.22 > version
echo hardware > behaviour

cat > sim.sweep <<'EOF'
kernel     = misbehave
allocators = glibc
counters   = sim
threads    = 2
EOF

# ---- what cannot be ------------------------------------------------------------------------------

# refused CODE PATTERN WORDS OF ak...
refused() {
  want=$1 pattern=$2
  shift 2
  is "ak $*: exit $want" "$(code ak "$@" --out refused)" "$want"
  check "it says: $pattern" grep -q -- "$pattern" err
  check "in one line" one_line err
  check "nothing was run" test ! -e refused
}
refused 2 "machine = 'epic-4x16'.*did you mean 'epyc-4x16'" run sim.sweep --preset smoke --machine epic-4x16
refused 2 "sim_mode = 'woven', expected one of weave, timed" run sim.sweep --preset smoke --sim-mode woven
refused 2 "sim_quantum = '0', expected a whole number" run sim.sweep --preset smoke --sim-quantum 0
refused 2 "--machine without a row that is simulated" run sim.sweep --preset smoke --counters none --machine laptop
refused 2 "none.ini', neither a machine of the suite nor a file" run sim.sweep --preset smoke --machine none.ini
printf 'kernel = misbehave\nallocators = glibc\ncounters = sim\npasses = latency\n' > latency.sweep
refused 2 "latency.sweep:4: passes = latency, but weave mode has no clock .*expected sim_mode = timed" run latency.sweep --preset smoke
printf 'kernel = misbehave\nallocators = glibc\ncounters = sim\nsim_mode = timed\npasses = memory\n' > memory.sweep
refused 2 "memory.sweep:5: .*--passes leaves out both" run memory.sweep --preset smoke
sed 's/^size    = 32M/size    = 33M/' "$root/experiments/machines/epyc-4x16.ini" > odd.ini
refused 2 "odd.ini:[0-9]*: l3: 34603008 bytes: expected a power of two times" run sim.sweep --preset smoke --machine odd.ini
echo 10.0.2 > version
refused 3 "QEMU 10.0.2, whose interface for plugins is not known here; supported is 7.2" run sim.sweep --preset smoke
check "ak doctor says it" sh -c '"$1" doctor | grep -A1 "counters: sim" | grep -q "QEMU 10.0.2"' sh "$ak"
check "ak list counters says it" sh -c '"$1" list counters | grep -q "sim .*cannot be used: .*10.0.2"' sh "$ak"
echo 7.2.22 > version
is "no QEMU on PATH: exit 3" "$(code env PATH="$dir/nothing" "$ak" run sim.sweep --preset smoke --out refused)" 3
check "it says so" grep -q "qemu-x86_64 is not on PATH: apt install qemu-user" err
rm "$suite/build/lib/simulator.so"
refused 3 "simulator.so is not built: run make" run sim.sweep --preset smoke
: > "$suite/build/lib/simulator.so"

mkdir "a, b"
cp "$root/experiments/machines/laptop.ini" "a, b/own.ini"
cp "$root/experiments/machines/laptop.ini" ..ini
refused 2 "/..ini: the name begins with '.'" run sim.sweep --preset smoke --machine "$PWD/..ini"

sed -n "/^    \[machine\]/,/^## /s/^    //p" "$root/docs/counters.md" > described.ini
is "the machine that the manual describes can be: exit 0" "$(code ak run sim.sweep --preset smoke --machine described.ini --dry-run)" 0
check "its dry run begins with how a row is started, and ends with the sum" \
  sh -c 'head -n 1 out | grep -q "is started by:" && tail -n 1 out | grep -q "launches .*roughly"'
"$ak" run --help > help
is "the quanta of the manual are those of the program" \
  "$(sed -n "s/^| .--sim-quantum.*| \([0-9]*\) (weave), \([0-9]*\) (timed) |.*/\1 \2/p" "$root/docs/counters.md")" \
  "$(sed -n "s/.*weave; default \([0-9]*\)).*timed; default \([0-9]*\)).*/\1 \2/p" help)"

# ---- how a kernel is started ---------------------------------------------------------------------

is "a simulated row: exit 0" "$(code ak run sim.sweep --preset smoke --machine epyc-4x16 --out one)" 0
is "a simulated row: ok" "$(statuses one)" "ok 1"
is "ak verify accepts it: exit 0" "$(code ak verify one)" 0
seed=$(column one/runs.csv seed)
check "the machine's numbers go to the plugin" \
  grep -q "^file=$suite/build/lib/simulator.so,nodes=4,cores_per_node=16,mhz=2000,l1=32768:8:4,.*,mode=weave,quantum=1000,seed=$seed\$" started
check "QEMU has the row's seed" sh -c 'grep -A1 "^-seed" started | grep -qx "$1"' sh "$seed"
check "the allocator goes by -E, not to QEMU" sh -c 'grep -q "^LD_PRELOAD=$" environment && grep -q "^LD_PRELOAD=" started'
check "hwloc is told the machine" grep -q '^HWLOC_SYNTHETIC=Package:4 \[NUMANode\] L3Cache:1 Core:16 PU:1$' environment
is "the kernel sees the machine's CPUs" "$(cat root/sys/devices/system/cpu/online)" 0-63
is "and nodes" "$(cat root/sys/devices/system/node/node3/cpulist)" 48-63
check "the folder for that is gone" sh -c 'r=$(sed -n 2p started) && test -n "$r" && test ! -e "$r" && test ! -e "$(dirname "$r")"'
is "cpus are the machine's" "$(column one/runs.csv cpus)" 64
is "sim_mode" "$(column one/runs.csv sim_mode)" weave
is "sim_quantum" "$(column one/runs.csv sim_quantum)" 1000
is "a count" "$(column one/runs.csv sim_false_sharing)" 2000
is "no time" "$(column one/runs.csv wall_ns)$(column one/runs.csv ops_per_s)$(column one/runs.csv cpu_user_ns)" ""
is "no cycles in weave mode" "$(column one/runs.csv cycles)$(column one/runs.csv sim_cycles_per_op)" ""
check "and why" grep -q ',cycles,,,"in weave mode' one/metrics.csv
is "the fake says stirred in every launch: three retries" "$(column one/runs.csv sim_retries)" 3
check "and the row says that its counts may differ" grep -q "counts may differ from run to run" one/runs.csv
is "meta.json has the machine" "$(jq -r '.simulator.machines[0].name, .simulator.qemu_version' one/meta.json | tr '\n' ' ')" "epyc-4x16 7.2.22 "

is "timed, two machines, two quanta: exit 0" \
  "$(code ak run sim.sweep --preset smoke --machine laptop,epyc-8x16 --sim-mode timed --sim-quantum 10,20 --out four)" 0
is "a row each" "$(statuses four)" "ok 4"
is "cycles in timed mode" "$(column four/runs.csv cycles | sort -u)" 2000
check "cycles per operation" sh -c '"$1" verify four' sh "$ak"
is "a machine is part of the cell" "$(column four/plan.csv options | grep -o 'machine=[^ ]*' | sort -u | tr '\n' ' ')" "machine=epyc-8x16 machine=laptop "
is "128 threads get the machine with as many cores: exit 0" "$(code ak run sim.sweep --preset smoke --threads 128 --out many)" 0
is "128 threads: ok" "$(statuses many) $(column many/runs.csv cpus) $(column many/runs.csv oversubscribed)" "ok 1 128 0"
is "more threads than any machine has: exit 3" "$(code ak run sim.sweep --preset smoke --threads 200 --out none)" 3
check "skipped with the reason" grep -q "has 128 cores, and 200 threads are asked for" none/runs.csv

is "a machine in a folder with a comma and a blank: exit 0" "$(code ak run sim.sweep --preset smoke --machine "a, b/own.ini" --out listed)" 0
is "it is one" "$(statuses listed)" "ok 1"
cp "$root/experiments/machines/laptop.ini" own.ini
is "a machine of one's own: exit 0" "$(code ak run sim.sweep --preset smoke --machine own.ini --out own)" 0
sed -i 's/^mhz .*/mhz = 1234/' own.ini
is "resumed with another machine of that name: exit 2" "$(code ak run sim.sweep --preset smoke --machine own.ini --out own --resume)" 2
check "it says so" grep -q "own.ini: the machine is not what it was" err

printf 'kernel = misbehave\nallocators = glibc\ncounters = sim\ntimeout = 2\nact = crash, hang, kill, verify\n' > bad.sweep
is "bad kernels: exit 1" "$(code ak run bad.sweep --preset smoke --out bad)" 1
is "bad kernels: statuses" "$(statuses bad)" "crash 2, timeout 1, verify_failed 1"
is "ak verify accepts them: exit 0" "$(code ak verify bad)" 0
check "nothing is left" nothing_left
printf 'kernel = misbehave\nallocators = wrapper\ncounters = sim\n' > wrapper.sweep
is "a preloaded allocator: exit 0" "$(code ak run wrapper.sweep --preset smoke --out wrapper)" 0
check "its path" grep -qx "LD_PRELOAD=$suite/build/lib/libwrapper.so" started
cp "$suite/build/lib/libwrapper.so" "$dir/a,b.so"
is "an allocator with a comma in its path: exit 0" "$(code env AK_LIBRARY_WRAPPER="$dir/a,b.so" "$ak" run wrapper.sweep --preset smoke --out comma)" 0
check "skipped with the reason" grep -q "a comma, which QEMU's -E cannot carry" comma/runs.csv

# ---- QEMU itself ----------------------------------------------------------------------------------

PATH=$real_path
if [ ! -e "$build/lib/simulator.so" ] || [ ! -e "$build/counters/sim.so" ]; then
  skip "in the simulated machine" "it is not built for this processor"
  finish
fi
cp "$build/lib/simulator.so" "$suite/build/lib/"
cp "$build/counters/sim.so" "$suite/build/counters/"
if ! "$ak" list counters --json | jq -e '.[] | select(.name == "sim") | .can' > can; then
  skip "in the simulated machine" "$("$ak" list counters --json | jq -r '.[] | select(.name == "sim") | .trouble')"
  finish
fi
cat > pair.sweep <<'EOF'
kernel     = misbehave, null
allocators = glibc, wrapper
counters   = sim
threads    = 1, 64
EOF
is "in the simulated machine: exit 0" "$(code ak run pair.sweep --preset smoke --out real)" 0
is "in the simulated machine: ok" "$(statuses real)" "ok 6"
is "ak verify accepts it: exit 0" "$(code ak verify real)" 0
sed 's/^kernel .*/kernel = misbehave/; s/^threads.*/threads = 2/' pair.sweep > clocked.sweep
printf 'sim_mode = timed\npasses = latency\nops = 100\n' >> clocked.sweep
is "latencies alone, in timed mode: exit 0" "$(code ak run clocked.sweep --preset smoke --out clocked)" 0
is "ak verify accepts them: exit 0" "$(code ak verify clocked)" 0
check "every call of malloc is a sample" grep -q ",sim_lat_samples,count,[1-9]" clocked/metrics.csv
check "in a histogram of its own" grep -q ",sim_malloc," clocked/hist.csv
check "and no throughput" grep -q ",sim_ops_per_s,1/s,,the throughput pass was not asked for" clocked/metrics.csv
is "again: exit 0" "$(code ak run pair.sweep --preset smoke --out again)" 0
counts() { cut -d, -f"$(head -n 1 "$1/runs.csv" | tr , '\n' | grep -nE '^(row_id|ops|instructions|l1d_|l3_|hitm|sim_)' | cut -d: -f1 | paste -sd,)" "$1/runs.csv" | sort; }
counts real > one.counts
counts again > two.counts
check "the same counts again" cmp one.counts two.counts
is "bad kernels in the simulated machine: exit 1" "$(code ak run bad.sweep --preset smoke --out reallybad)" 1
is "bad kernels in the simulated machine: statuses" "$(statuses reallybad)" "crash 2, timeout 1, verify_failed 1"
finish
