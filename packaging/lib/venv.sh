# shellcheck shell=bash
# Folders in the cache that hold packages from PyPI, one for each list of them. Sourced inside the environment, never run.

# package_cache: where they are kept. Inside, only the compiler cache may tell.
package_cache() {
  if [[ -z ${TANDEM_CACHE:-} && -n ${CCACHE_DIR:-} ]]; then
    dirname "$CCACHE_DIR"
  else
    printf '%s\n' "${TANDEM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem}"
  fi
}

# folder_for NAME LIST: where what LIST names is kept. Another Python or another list is another folder.
folder_for() {
  local key
  key=$({ cat "$2" && python3 --version; } | sha256sum | cut -c1-12)
  printf '%s/%s-%s\n' "$(package_cache)" "$1" "$key"
}

# provide FOLDER MAKER ARGUMENT…: FOLDER is there and whole afterwards, or this fails. Made aside by `MAKER ASIDE
# ARGUMENT…` and renamed; one maker at a time.
provide() {
  local folder=$1 maker=$2 aside=$1.partial fd status=0
  shift 2
  [[ ! -d $folder ]] || return 0
  mkdir -p "$(dirname "$folder")" || return 1
  exec {fd}>"$folder.lock" || return 1
  flock "$fd"
  if [[ ! -d $folder ]]; then
    rm -rf "$aside" "$aside.wheels"
    { "$maker" "$aside" "$@" {fd}>&- && mv "$aside" "$folder"; } || status=1
  fi
  exec {fd}>&-
  return "$status"
}
