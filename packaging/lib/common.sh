# shellcheck shell=bash
# Messages, steps and locks shared by the launcher's files. Sourced, never run.

say() { printf 'tandem: %s\n' "$*" >&2; }

# die MESSAGE [ADVICE…]: one line on what failed, then one line per piece of advice.
die() { leave 1 "$@"; }

# misuse MESSAGE [ADVICE…]: the same for a wrong command line.
misuse() { leave 2 "$@"; }

# leave STATUS MESSAGE [ADVICE…]
leave() {
  local status=$1 line
  printf 'tandem: error: %s\n' "$2" >&2
  shift 2
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit "$status"
}

# cache_dir: TANDEM_CACHE, or the place that the desktop's rules give. Without a home it is in /tmp.
cache_dir() {
  local dir=${TANDEM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp/tandem-$EUID}/.cache}/tandem}
  [[ $dir == /* ]] || dir=$PWD/$dir
  printf '%s\n' "$dir"
}

make_writable_directory() { mkdir -p "$1" 2>/dev/null && [[ -w $1 ]]; }

# make_cache DIRECTORY: nobody else may have put it there, since programs in it are run.
make_cache() {
  make_writable_directory "$1" ||
    die "cannot write to $1" "Set TANDEM_CACHE to a directory of yours with 2 GB free."
  if [[ $1 == /tmp/tandem-$EUID/* ]]; then
    [[ -O /tmp/tandem-$EUID && ! -L /tmp/tandem-$EUID ]] ||
      die "/tmp/tandem-$EUID belongs to somebody else" "Set TANDEM_CACHE to a directory of yours with 2 GB free."
    chmod 700 "/tmp/tandem-$EUID"
  fi
}

# need_space DIRECTORY MEGABYTES WHAT
need_space() {
  local free
  free=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }') || free=
  [[ -z $free ]] || ((free >= $2)) ||
    die "only $free MB are free in $1; $3 needs $2 MB" "Make room there, or set TANDEM_CACHE to another directory."
}

# interruptible COMMAND…: runs COMMAND in a process group of its own, so that a signal to this
# script stops all of it at once instead of waiting for it to end.
interruptible() {
  local status=0 told=
  # A signal that comes before JOB is known is heard as soon as it is: else COMMAND would be left running.
  trap 'told=130' INT
  trap 'told=143' TERM
  trap 'told=129' HUP
  set -m
  "$@" </dev/null &
  JOB=$!
  set +m
  trap 'stop_job 130' INT
  trap 'stop_job 143' TERM
  trap 'stop_job 129' HUP
  [[ -z $told ]] || stop_job "$told"
  wait "$JOB" || status=$?
  trap - INT TERM HUP
  return "$status"
}

# logged FILE COMMAND…: only COMMAND's output goes there, so that a person still sees ours.
logged() { "${@:2}" >>"$1" 2>&1; }

stop_job() {
  trap '' INT TERM HUP
  # More than once: a shell that is just starting a child, or is that child and not itself yet, may not hear it.
  local round
  for ((round = 0; round < 100; ++round)); do
    kill -TERM -- "-$JOB" 2>/dev/null || break
    sleep 0.05
  done
  wait "$JOB" 2>/dev/null || true
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  say "stopped; the same command goes on from here"
  exit "$1"
}

# tick TEXT LOG: says now and then how many packages are done: lines of LOG that match STEP_COUNTS.
tick() {
  local pause=10
  [[ ! -t 2 ]] || pause=1
  while sleep "$pause" && kill -0 "$$"; do
    if [[ -t 2 ]]; then printf '\r\033[K'; fi
    printf '%s %s packages' "$1" "$(grep -cE "$STEP_COUNTS" "$2")"
    [[ -t 2 ]] || echo
  done >&2
}

# step N TOTAL TEXT LOG COMMAND…: runs COMMAND with its output in LOG, shows TEXT, and on
# failure prints the end of LOG and exits.
step() {
  local number=$1 total=$2 text=$3 log=$4 begun=$SECONDS
  shift 4
  printf '[%s/%s] %s…\n' "$number" "$total" "$text" >&2
  local status=0 ticker=
  : >"$log"
  if [[ -n ${STEP_COUNTS:-} ]]; then
    tick "[$number/$total] $text…" "$log" &
    ticker=$!
  fi
  interruptible logged "$log" "$@" || status=$?
  if [[ -n $ticker ]]; then
    kill "$ticker" && wait "$ticker"
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
  fi 2>/dev/null
  if ((status != 0)); then
    printf '[%s/%s] failed after %s s. The last lines of %s:\n' \
      "$number" "$total" "$((SECONDS - begun))" "$log" >&2
    tail -n 15 "$log" | sed 's/^/    /' >&2
    return "$status"
  fi
  printf '[%s/%s] done in %s s\n' "$number" "$total" "$((SECONDS - begun))" >&2
}

# with_lock FILE TEXT COMMAND…: runs COMMAND while holding FILE; shows TEXT if it has to wait.
# The descriptor is closed for COMMAND's children, so a daemon cannot keep the lock should this shell be killed.
with_lock() {
  local file=$1 text=$2 fd status=0
  shift 2
  exec {fd}>"$file" || die "cannot open $file" "Is the disk full, or the directory read-only?"
  if ! flock --nonblock "$fd"; then
    say "$text"
    flock "$fd"
  fi
  "$@" {fd}>&- || status=$?
  flock --unlock "$fd" # A child that has been forked and not yet become its program still shares the descriptor.
  exec {fd}>&-
  return "$status"
}

# programs_for COMMAND: what must be built for a command of the program's own, one target a line. Trainers take longer to
# compile than all the rest, so only `serve` waits for that; the demo has one built while it serves.
programs_for() {
  echo tandem
  [[ $1 != serve ]] || echo tandem-trainer
}
