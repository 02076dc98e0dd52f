#!/bin/bash
# Runs inside the environment, in the working directory of the user:
#   inside.sh build|run|built|test|bench|soak|shell|lint PRESET ARGUMENT…
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$HERE/packaging/lib/common.sh"
. "$HERE/packaging/lib/build.sh"
. "$HERE/packaging/lib/venv.sh"
. "$HERE/packaging/lib/peers.sh"

command=$1 preset=$2
shift 2
binaries=$HERE/build/$preset

case $command in
  shell)
    if (($# > 0)); then exec "$@"; fi
    exec bash --norc -i
    ;;
  build) build "$preset" "${@:-all}" ;;
  run)
    mapfile -t programs < <(programs_for "${1:-}")
    build "$preset" "${programs[@]}"
    exec "$binaries/bin/tandem" "$@"
    ;;
  built) exec "$binaries/bin/tandem" "$@" ;;
  bench)
    if [[ ${1:-} == peers ]]; then
      peers "${@:2}"
      exit
    fi
    build "$preset" tandem-bench
    export_peers
    exec "$binaries/bin/tandem-bench" "$@"
    ;;
  soak)
    build "$preset" tandem tandem-trainer
    export TANDEM_BINARY=$binaries/bin/tandem
    exec bash "$HERE/tests/soak/run.sh" "$@"
    ;;
  test)
    build "$preset" all
    exec ctest --test-dir "$binaries" --output-on-failure -j"$(nproc)" "$@"
    ;;
  lint) exec bash "$HERE/packaging/lib/lint.sh" "$@" ;;
esac
