# shellcheck shell=bash
# The packages from PyPI that the integration tests import. Sourced inside the environment, never run.

INTEGRATION=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=packaging/lib/venv.sh
. "$INTEGRATION/../../packaging/lib/venv.sh"

die() {
  printf 'integration tests: %s\n' "$@" >&2
  exit 1
}

make_venv() {
  python3 -m venv "$1" &&
    "$1/bin/python" -m pip install --quiet --no-deps --only-binary :all: -r "$INTEGRATION/requirements.txt"
}

# fetched FOLDER MAKER: FOLDER is there and whole afterwards.
fetched() {
  [[ -d $1 ]] || printf 'integration tests: fetching packages into %s\n' "$1" >&2
  provide "$@" || die "the packages could not be fetched; is PyPI (or PIP_INDEX_URL) in reach?"
}

# use_packages: sets VENV, a folder with them, and what else the tests expect of their surroundings.
use_packages() {
  VENV=$(folder_for venv "$INTEGRATION/requirements.txt")
  fetched "$VENV" make_venv
  # The asyncio client and pip look at proxies; the servers are on this machine.
  export no_proxy=127.0.0.1,localhost NO_PROXY=127.0.0.1,localhost PYTHONDONTWRITEBYTECODE=1
}
