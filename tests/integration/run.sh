#!/bin/bash
# Runs the integration tests inside the environment (./tandem shell -- tests/integration/run.sh …):
#   run.sh [MODULE…] [-k PATTERN]
# All modules, or those named (hostile_http_test, or hostile for all that begin so), each in a process of its own.
# With -k only the tests whose names match.
# TANDEM_BINARY names the program to test; by default that of the release preset.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/integration/packages.sh
. "$HERE/packages.sh"

make_perf_analyzer() {
  local wheels=$1.wheels wheel
  "$VENV/bin/python" -m pip download --quiet --no-deps --only-binary :all: -d "$wheels" \
    -r "$HERE/perf_analyzer_requirements.txt" || return 1
  for wheel in "$wheels"/*.whl; do python3 -m zipfile -e "$wheel" "$1" || return 1; done
  chmod +x "$1"/*/data/bin/perf_analyzer
  rm -rf "$wheels"
}

# modules_like BEGINNING: the test module of that name, or all that begin so, one a line.
modules_like() {
  if [[ -n $1 && -e $HERE/$1_test.py ]]; then
    printf '%s\n' "$1_test"
    return
  fi
  (cd "$HERE" && find . -maxdepth 1 -name "$1*_test.py" | sed 's/^\.\///; s/\.py$//' | sort)
}

modules=() options=()
while (($# > 0)); do
  case $1 in
    -k) options+=("$1" "${2:?-k needs a pattern}") && shift ;;
    *)
      # The whole name of one is not also the beginning of others.
      if [[ -e $HERE/$1.py ]]; then found=$1; else found=$(modules_like "${1%_test}"); fi
      [[ -n $found ]] || die "no module is called $1, or begins so"
      mapfile -t -O "${#modules[@]}" modules <<<"$found"
      ;;
  esac
  shift
done
((${#modules[@]} > 0)) || mapfile -t modules < <(modules_like "")

use_packages
if [[ " ${modules[*]} " == *" perf_analyzer_test "* ]]; then
  PERF_ANALYZER=$(folder_for perf-analyzer "$HERE/perf_analyzer_requirements.txt")
  fetched "$PERF_ANALYZER" make_perf_analyzer
  export PERF_ANALYZER
fi
failed=()
for module in "${modules[@]}"; do
  "$VENV/bin/python" "$HERE/run_tests.py" "$module" "${options[@]}" || failed+=("$module")
done
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
