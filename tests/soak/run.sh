#!/bin/bash
# Runs a soak inside the environment: run.sh NAME ARGUMENT…. Each is a program NAME_soak.py in this folder.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/integration/packages.sh
. "$HERE/../integration/packages.sh"

name=${1:-}
if [[ -z $name || ! -e $HERE/${name}_soak.py ]]; then
  known=$(cd "$HERE" && for file in *_soak.py; do printf ' %s' "${file%_soak.py}"; done)
  printf "tandem soak: '%s' is no soak; there is:%s\n" "$name" "$known" >&2
  exit 2
fi
shift
use_packages
exec "$VENV/bin/python" "$HERE/${name}_soak.py" "$@"
