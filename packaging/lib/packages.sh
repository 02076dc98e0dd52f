# shellcheck shell=bash
# The package list by section, and the key of an environment made from it.
# Run as a program, it prints the packages of the sections given (packaging/Dockerfile does).

# Part of the key: raise it when a root must be rebuilt though the list is unchanged.
ROOT_FORMAT=3

# packages_in FILE SECTION…
packages_in() {
  local file=$1 line section=
  shift
  while IFS= read -r line || [[ -n $line ]]; do
    line=${line%%#*}
    line=${line//[[:space:]]/}
    case $line in
      '') ;;
      \[*\]) section=${line:1:-1} ;;
      *) [[ " $* " == *" $section "* ]] && printf '%s\n' "$line" ;;
    esac
  done <"$file"
  return 0
}

# environment_key FILE SECTION…: changes when a package or the format does, and only then.
environment_key() {
  local file=$1 sum
  shift
  sum=$({
    printf '%s %s\n' "$ROOT_FORMAT" "$(uname -m)"
    packages_in "$file" "$@" | LC_ALL=C sort -u
  } | sha256sum)
  printf '%s\n' "${sum:0:12}"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  packages_in "$(dirname "$0")/../packages.txt" "$@"
fi
