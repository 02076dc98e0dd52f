#!/bin/bash
# Runs inside the environment: formatting, shellcheck, and a clang build with -Wthread-safety that also runs clang-tidy.
# lint.sh [FILE…]: without FILEs, all of the project. The build checks only what changed since it last found nothing.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$HERE/packaging/lib/common.sh"
. "$HERE/packaging/lib/build.sh"

failed=()
targets=(all)
files=()
for file in "$@"; do files+=("$(realpath -e "$file")"); done
cd "$HERE"
if ((${#files[@]} == 0)); then
  mapfile -t files < <(find . \( -path ./build -o -path ./.git \) -prune -o \( -name '*.h' -o -name '*.cc' \) -print | sort)
else
  targets=()
  # Ninja's name for what is made from a file.
  for file in "${files[@]}"; do [[ $file != *.cc ]] || targets+=("$file^"); done
fi

say "clang-format (${#files[@]} files)"
clang-format --dry-run --Werror "${files[@]}" || failed+=(clang-format)

say "shellcheck"
shellcheck -x tandem .ci/run packaging/lib/*.sh tests/launcher/*.sh tests/bench/*.sh tests/integration/run.sh || failed+=(shellcheck)

if ((${#targets[@]} > 0)); then
  say "clang with -Wthread-safety, and clang-tidy"
  export CC=/usr/bin/clang CXX=/usr/bin/clang++
  if ! (build clang -k 0 -j "$(nproc)" "${targets[@]}"); then
    failed+=("the clang build")
    say "in short:"
    grep -E '^[^ ]+:[0-9]+:[0-9]+: (warning|error|fatal error): ' build/clang.build.log | sort -u >&2 || true
  fi
fi

((${#failed[@]} == 0)) || die "lint found problems in: ${failed[*]}" "clang-format -i FILE mends formatting."
say "lint found nothing"
