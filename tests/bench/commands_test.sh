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
check 1 'not run: throughput' check "$HERE/not_run.json"
check 0 'the other 1 rows' check "$HERE/not_run_promises_nothing.json"
check 1 'holds no rows' check "$HERE/empty.json"
check 1 'cannot be read' check "$WORK/absent.json"
check 0 '^colocation .*loadgen .*serving ' list
check 0 '"name" : "serving"' list --json
for command in '' serving check list; do
  # shellcheck disable=SC2086 # none is no argument
  check 0 'xample' $command --help
done
check 2 'there are colocation, loadgen, memory, serving' nonsense
check 2 'which scenario' --quick
check 2 '' check
check 2 'cannot be read' "$WORK/absent.json"
echo '{"name": "mine"}' >"$WORK/mine.json"
check 2 "mine.json': /what: is missing" "$WORK/mine.json"
check 0 '--quota CORES' --help
for quota in 0 -1 many; do check 2 '--quota' colocation --quota "$quota"; done
check 2 'none has a quota' serving --quota 1
check 2 'quota: must be from 0 to 1024' colocation --quota 2000
check 2 'is in no row of .*load 0.3, quota of 1.5 cores, tandem' colocation --quota 1.5 --only nonsense
check 2 'is in no row of .*start to ready' serving --only nonsense

# A run that fails at once, for want of a model.
export TANDEM_ROOT=$WORK/none
missing=(serving --quick --only 'JSON decoding')
check 1 'light_squeezenet' "${missing[@]}" --json "$WORK/new.json"
[[ ! -e $WORK/new.json ]] || { echo "FAILED  a failed run leaves a file" && failed=1; }
echo old >"$WORK/old.json"
check 1 'light_squeezenet' "${missing[@]}" --json "$WORK/old.json"
[[ $(<"$WORK/old.json") == old ]] || { echo "FAILED  a failed run loses what the file held" && failed=1; }
check 1 'cannot be written' "${missing[@]}" --json "$WORK/absent/new.json"
exit "$failed"
