#!/bin/bash
# Runs inside the environment: formatting, clang-tidy and a clang build with -Wthread-safety.
# lint.sh [FILE…]: without FILEs, every C++ file of the project.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$HERE/packaging/lib/common.sh"
. "$HERE/packaging/lib/build.sh"
cd "$HERE"

failed=()
files=("$@")
if ((${#files[@]} == 0)); then
  mapfile -t files <<<"$(find . -path ./build -prune -o -path ./.git -prune -o \( -name '*.h' -o -name '*.cc' \) -print | sort)"
fi
sources=()
for file in "${files[@]}"; do [[ $file != *.cc ]] || sources+=("$file"); done

say "clang-format (${#files[@]} files)"
clang-format --dry-run --Werror "${files[@]}" || failed+=(clang-format)

say "shellcheck"
shellcheck -x tandem .ci/run packaging/lib/*.sh tests/launcher/*.sh || failed+=(shellcheck)

say "clang with -Wthread-safety"
export CC=/usr/bin/clang CXX=/usr/bin/clang++
(build clang all) || failed+=("clang build")

if [[ -e build/clang/compile_commands.json ]]; then
  say "clang-tidy (${#sources[@]} files)"
  printf '%s\0' "${sources[@]}" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/clang --quiet --warnings-as-errors='*' || failed+=(clang-tidy)
fi

((${#failed[@]} == 0)) || die "lint found problems in: ${failed[*]}" "clang-format -i FILE mends formatting."
say "lint found nothing"
