# shellcheck shell=bash
# The Python servers that `./tandem bench` compares with: bench/peers/NAME.txt lists the packages of each. Sourced inside
# the environment, never run. Needs $HERE, common.sh and venv.sh.

peers_usage() {
  cat <<'END'
./tandem bench peers list               the Python servers that scenarios compare with, and which are installed
./tandem bench peers install [NAME…]    fetch their packages from PyPI into the cache; without a NAME all

Example:
  ./tandem bench peers install mlserver
END
}

peer_names() { (cd "$HERE/bench/peers" && find . -maxdepth 1 -name '*.txt' | sed 's/^\.\///; s/\.txt$//' | sort); }

peer_folder() { folder_for "venv-peer-$1" "$HERE/bench/peers/$1.txt"; }

# export_peers: tells the program which interpreters there are: TANDEM_PEER_NAME.
export_peers() {
  local name folder
  for name in $(peer_names); do
    folder=$(peer_folder "$name")
    [[ ! -x $folder/bin/python ]] || export "TANDEM_PEER_$name=$folder/bin/python"
  done
}

# fetch_peer FOLDER LIST: every package is pinned, and none is asked which Python it wants.
fetch_peer() {
  "$1/bin/python" -m pip install --progress-bar off --no-deps --only-binary :all: --ignore-requires-python -r "$2"
}

# make_peer FOLDER NAME
make_peer() {
  local list=$HERE/bench/peers/$2.txt log=$1.log count
  count=$(grep -c '==' "$list")
  step 1 2 "Making a Python environment for $2" "$log" python3 -m venv "$1" || return 1
  STEP_COUNTS='^Collecting ' step 2 2 "Fetching $count packages for $2" "$log" fetch_peer "$1" "$list" || return 1
}

install_peer() {
  local name=$1 folder
  folder=$(peer_folder "$name")
  if [[ -d $folder ]]; then
    say "$name is installed: $folder"
    return 0
  fi
  make_writable_directory "$(package_cache)" ||
    die "cannot write to $(package_cache)" "Set TANDEM_CACHE to a directory of yours with 1 GB free."
  need_space "$(package_cache)" 1000 "a peer"
  provide "$folder" make_peer "$name" ||
    die "the packages of $name could not be installed" \
      "Is PyPI (or what PIP_INDEX_URL names) in reach? The lines above say what failed." \
      "./tandem bench peers install $name tries again."
  say "$name is installed: $folder"
}

list_peers() {
  local name state
  for name in $(peer_names); do
    state="not installed: ./tandem bench peers install $name"
    [[ ! -d $(peer_folder "$name") ]] || state=installed
    printf '%-9s %s\n' "$name" "$state"
  done
}

# peers COMMAND ARGUMENT…
peers() {
  local command=${1:-} name
  local -a names
  (($# == 0)) || shift
  case $command in
    help | --help | -h) peers_usage ;;
    list)
      (($# == 0)) || misuse "peers list takes no arguments, and not '$*'"
      list_peers
      ;;
    install)
      mapfile -t names < <(peer_names)
      for name in "$@"; do
        [[ " ${names[*]} " == *" $name "* ]] || misuse "there is no peer '$name'" "Known: ${names[*]}."
      done
      (($# == 0)) || names=("$@")
      for name in "${names[@]}"; do install_peer "$name"; done
      ;;
    *) misuse "bench peers needs list or install, and not '$command'" "./tandem bench peers --help says more." ;;
  esac
}
