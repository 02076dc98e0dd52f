#!/bin/bash
# What `tandem bench` says and leaves behind, without measuring anything: commands_test.sh PROGRAM
set -uo pipefail

PROGRAM=$1
HERE=$(cd "$(dirname "$0")" && pwd)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
failed=0

# check CODE PATTERN ARGUMENT…: that exit code, and output that matches.
check() {
  local code=$1 pattern=$2 output status=0
  shift 2
  output=$("$PROGRAM" "$@" 2>&1) || status=$?
  if ((status != code)) || ! [[ $output =~ $pattern ]]; then
    printf 'FAILED  tandem bench %s: exit code %s\n%s\n' "$*" "$status" "$output"
    failed=1
  fi
}

check 0 'all 1 rows' check "$HERE/met.json"
check 1 'missed: throughput' check "$HERE/missed.json"
check 1 'holds no rows' check "$HERE/empty.json"
check 1 'cannot be read' check "$WORK/absent.json"
check 0 '^serving ' list
check 0 '"name" : "serving"' list --json
for command in '' serving check list; do
  # shellcheck disable=SC2086 # none is no argument
  check 0 'xample' $command --help
done
check 2 '' nonsense
check 2 '' check

# A run that fails at once, for want of a model.
export TANDEM_ROOT=$WORK/none
check 1 'light_squeezenet' serving --quick --json "$WORK/new.json"
[[ ! -e $WORK/new.json ]] || { echo "FAILED  a failed run leaves a file" && failed=1; }
echo old >"$WORK/old.json"
check 1 'light_squeezenet' serving --quick --json "$WORK/old.json"
[[ $(<"$WORK/old.json") == old ]] || { echo "FAILED  a failed run loses what the file held" && failed=1; }
check 1 'cannot be written' serving --quick --json "$WORK/absent/new.json"
exit "$failed"
