# simulated.sh - to be sourced by scripts that run a program in the simulated machine by themselves, after common.sh: what they
# have in common with the runner, in short. $epyc and $shape, the words of a machine of 4 nodes of 16 cores, for the plugin and
# for hwloc, and in_machine.
# shellcheck shell=sh

# shellcheck disable=SC2034,SC2154 # for the script that sources this; $build and $dir are common.sh's
plugin=$build/lib/simulator.so
epyc="nodes=4,cores_per_node=16,l1=32768:8:4,l2=1048576:16:14,l3=33554432:16:46"
shape="NUMANode:4 L3Cache:1 Core:16 PU:1"

# What programs read of it: its nodes, its CPUs (glibc has so many arenas for each). A list ends with a line, as the kernel's does.
mkdir -p "$dir/root/sys/devices/system/node" "$dir/root/sys/devices/system/cpu"
echo 0-3 > "$dir/root/sys/devices/system/node/has_memory"
echo 0-63 | tee "$dir/root/sys/devices/system/cpu/possible" > "$dir/root/sys/devices/system/cpu/online"

# What the program is told of itself (its own path, the preloaded one) is the same wherever this folder lies: its stack begins
# with it, and a layout of the stack is a small difference in the counts.
ln -s "$build" "$dir/b"

# in_machine WORDS COMMAND...: nothing of this process's environment, and the same addresses in every run. The command may
# begin with options of QEMU. $measure, if set, is a program that runs it all.
in_machine() {
  words=$1
  shift
  for word; do
    shift
    case $word in *"$build"/*) word=${word%%"$build"/*}b/${word#*"$build"/} ;; esac
    set -- "$@" "$word"
  done
  (
    cd "$dir" || exit 3
    ${measure:+"$measure"} timeout -s KILL 300 setarch -R env -i "$(command -v qemu-x86_64)" -L "$dir/root" -seed 1 \
      -plugin "$plugin,$words" -E HWLOC_SYNTHETIC="$shape" -E HWLOC_THISSYSTEM=1 "$@"
  )
}
