# apt.sh - to be sourced after common.sh by scripts that have set $work: packages of Debian through an apt configuration of
# its own (sources, state and cache under $work; proxy as the machine's apt has it; signed by Debian's keyring). Nothing is
# installed. Where the script is stopped by a signal it ends what it started and removes $folder, what is half made.
#
# shellcheck shell=sh
# shellcheck disable=SC2154 # $work is the script's
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

exec 3>&2 # for what is said while a command's output goes to the log
child='' # what runs in the background, with the processes that it started: a group of its own
folder='' # that is being made

# run COMMAND...: wait for it so that a signal is heard at once
run() {
  setsid "$@" < /dev/null 3>&- &
  child=$!
  wait $child
  code=$?
  child=
  return $code
}

# stopped NUMBER: by that signal
stopped() {
  trap '' HUP INT TERM
  if [ -n "$child" ]; then
    # Just started it may not have its group yet.
    kill -s TERM -- "-$child" 2> /dev/null || kill -s TERM "$child" 2> /dev/null
    wait "$child" 2> /dev/null
  fi
  [ -z "$folder" ] || rm -rf "$folder"
  say "stopped" 2>&3
  exit $((128 + $1))
}
trap 'stopped 1' HUP
trap 'stopped 2' INT
trap 'stopped 15' TERM

# The last thing that apt complained about, on one line.
last_error() { sed -n -e 's/^[EW]: //p' "$work/log" | tail -n 1; }

# mirror_find NAMED [RELEASE]: the mirror that the user named, else the one that RELEASE (this system's own) comes from.
mirror_find() {
  [ -z "$1" ] || { printf '%s' "$1" && return; }
  # shellcheck disable=SC2016 # apt's own variables
  apt-get indextargets --no-release-info --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2> /dev/null |
    awk -v release="${2:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")}" '$1 == release { print $2; exit }'
}

# mirror_options MIRROR: what stands before it in a list of sources. A folder is the user's own and need not be signed.
mirror_options() {
  case $1 in
    file:*) echo trusted=yes ;;
    *) echo "signed-by=$keyring" ;;
  esac
}

# apt ARGUMENT...: apt-get; what it says is in $work/log
apt() { run env LC_ALL=C apt-get -c "$work/apt.conf" -q "$@" > "$work/log" 2>&1; }

# What it reads is the list of sources.
apt_configure() {
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" || exit 3
  : > "$work/state/status"
  cat > "$work/sources.list"
  # What the machine's own configuration runs after an update is about the machine's own lists.
  cat > "$work/apt.conf" << CONF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
Dir::State "$work/state";
Dir::State::status "$work/state/status";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF
}

apt_update() {
  apt update || die 3 "no lists of packages to be had: $(last_error)"
  ! grep -q '^Err\|^E: ' "$work/log" || die 3 "no lists of packages to be had: $(last_error)"
}
