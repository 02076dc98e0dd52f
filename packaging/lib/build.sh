# shellcheck shell=bash
# Configures and builds a preset, quietly when there is little to do. Needs $HERE.

# configured PRESET: is build/PRESET made from the present environment and presets?
configured() {
  local dir=$HERE/build/$1
  [[ -e $dir/build.ninja && $dir/build.ninja -nt $HERE/CMakePresets.json ]] &&
    [[ $(cat "$dir/.tandem-environment" 2>/dev/null) == "$TANDEM_ENVIRONMENT" ]]
}

run_cmake() {
  cd "$HERE" && cmake --preset "$1" -G Ninja \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "${@:2}"
}

configure() {
  local preset=${1:?} dir=$HERE/build/$1 log=$HERE/build/$1.configure.log
  # Objects from other system headers must not be reused; ccache knows which still fit.
  # A link is left from work in a chroot.
  if [[ -L $dir ]] || [[ -d $dir && $(cat "$dir/.tandem-environment" 2>/dev/null) != "$TANDEM_ENVIRONMENT" ]]; then
    rm -rf "$dir"
  fi
  say "configuring ($preset)"
  local -a options=()
  read -ra options <<<"${TANDEM_CMAKE_OPTIONS:-}"
  : >"$log"
  if ! interruptible logged "$log" run_cmake "$preset" "${options[@]}"; then
    tail -n 40 "$log" >&2
    die "CMake could not configure the preset '$preset'" "The whole output is in $log."
  fi
  # CMake leaves build.ninja alone when nothing in it changed.
  touch "$dir/build.ninja"
  printf '%s\n' "$TANDEM_ENVIRONMENT" >"$dir/.tandem-environment"
}

# show_progress: reads Ninja's lines; on a terminal one line that changes, in a pipe one now and then.
show_progress() {
  local line next=$((SECONDS + 2)) width shown=0
  width=$(tput cols 2>/dev/null) || width=80
  while IFS= read -r line; do
    [[ $line == \[*/*\]* ]] || continue
    ((SECONDS >= next)) || continue
    shown=1
    if [[ -t 2 ]]; then
      printf '\r\033[K%s' "${line:0:width-1}" >&2
    else
      printf '%s\n' "$line" >&2
      next=$((SECONDS + 10))
    fi
  done
  ((shown == 0)) || [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# build PRESET TARGET…
build() {
  local preset=$1
  shift
  make_writable_directory "$HERE/build" ||
    die "cannot write to $HERE/build" "The checkout must be writable: clone it into a directory of yours."
  with_lock "$HERE/build/.$preset.lock" "waiting for another build of this checkout" build_locked "$preset" "$@"
}

build_locked() {
  local preset=$1 log=$HERE/build/$1.build.log status=0
  shift
  configured "$preset" || configure "$preset"
  interruptible compile "$preset" "$log" "$@" || status=$?
  ((status == 0)) && return 0
  sed -n '/^FAILED:/,$p;/^ninja: error/p' "$log" | head -n 200 >&2
  die "the build failed (preset $preset)" "The whole output is in $log."
}

# compile PRESET LOG TARGET…
compile() {
  set -o pipefail
  ninja -C "$HERE/build/$1" "${@:3}" 2>&1 | tee "$2" | show_progress
}
