# shellcheck shell=bash
# For root in a container that forbids mounts. The build runs in a chroot, on a copy of the checkout
# at the same path. What it makes names its loader and libraries by their path in the cache, and
# the root holds a link from that path to itself; so the same program runs outside too, where it
# sees the host's files, /proc and /dev like any other.

root_libraries() { echo "$1/usr/lib/$(multiarch)"; }

root_loader() {
  case $(uname -m) in
    x86_64) echo "$1/usr/lib64/ld-linux-x86-64.so.2" ;;
    aarch64) echo "$1/usr/lib/ld-linux-aarch64.so.1" ;;
  esac
}

# adapt_root ROOT: under the cache's lock. Adapts what is there and was not adapted before.
adapt_root() {
  local root=$1 program marker
  # shellcheck disable=SC2153 # HERE is set by the launcher
  [[ $root$HERE =~ ^[[:alnum:]/._+@%,=-]+$ ]] ||
    die "in a chroot the paths of the cache and of the checkout may hold only letters, digits and ._+@%,=-" \
      "Set TANDEM_CACHE, or move the checkout ($HERE)."
  if [[ ! -e $root/.tandem/chroot ]]; then
    mkdir -p "$root${root%/*}" "$root/dev" "$root/tmp"
    ln -sfn / "$root$root"
    [[ -e $root/dev/null ]] || make_devices "$root/dev"
    # Where `python3 -m venv` finds pip.
    sed -i "s|'/usr/share/python-wheels/'|'$root/usr/share/python-wheels/'|" \
      "$root"/usr/lib/python3.*/_sysconfigdata_*.py
    : >"$root/.tandem/chroot"
  fi
  for program in bin/python3 bin/ctest bin/cmake lib/chromium/chromium-headless-shell; do
    marker=$root/.tandem/adapted-${program##*/}
    [[ -e $root/usr/$program && ! -e $marker ]] || continue
    # Without --no-sort patchelf breaks programs with fixed addresses, such as python3.
    chroot "$root" /usr/bin/patchelf --no-sort --force-rpath --set-rpath "$(root_libraries "$root")" \
      --set-interpreter "$(root_loader "$root")" "$(chroot "$root" /usr/bin/readlink -f "/usr/$program")" ||
      die "could not adapt $program in $root" "Remove that directory and run again."
    : >"$marker"
  done
}

# make_devices DIRECTORY
make_devices() {
  local name minor
  while read -r name minor; do
    mknod -m 666 "$1/$name" c 1 "$minor" ||
      die "cannot make devices in $1" "This container lacks CAP_MKNOD; use packaging/Dockerfile instead."
  done <<<$'null 3\nzero 5\nfull 7\nrandom 8\nurandom 9'
}

# copy_checkout ROOT: brings ROOT's copy up to date, times kept, so that only changes are compiled.
copy_checkout() {
  # shellcheck disable=SC2153 # HERE is set by the launcher
  local copy=$1$HERE path
  mkdir -p "$copy"
  tar -C "$HERE" --exclude=./build --exclude=./.git -cf - . | tar -C "$copy" -xf -
  (cd "$copy" && find . \( -path ./build -o -path ./.git \) -prune -o \( -type f -o -type l \) -print) |
    while IFS= read -r path; do
      [[ -e $HERE/$path || -L $HERE/$path ]] || rm -f "$copy/$path"
    done
}

# chroot_run ROOT COMMAND…: in the working directory if ROOT has it, else the checkout.
chroot_run() {
  local root=$1 file directory=$PWD
  shift
  for file in passwd group hosts resolv.conf; do
    [[ ! -e /etc/$file ]] || cp "/etc/$file" "$root/etc/$file"
  done
  [[ -d $root$directory ]] || directory=$HERE
  # shellcheck disable=SC2016
  interruptible chroot "$root" /bin/bash -c 'cd "$0" && exec "$@"' "$directory" "$@"
}

# enter_chroot ROOT COMMAND PRESET ARGUMENT…: does not return.
enter_chroot() {
  local root=$1 command=$2 preset=$3
  shift 3
  with_lock "$(cache_dir)/lock" "waiting for another set-up" adapt_root "$root"
  with_lock "$root/.tandem/copy.lock" "waiting for another copy" copy_checkout "$root"
  offer_certificates "$root"
  case $command in
    shell)
      (($# > 0)) || set -- bash --norc -i
      # shellcheck disable=SC2016
      exec chroot "$root" /bin/bash -c 'cd "$0" 2>/dev/null || cd "$1"; shift; exec "$@"' "$PWD" "$HERE" "$@"
      ;;
    lint)
      local status=0
      chroot_run "$root" /bin/bash "$HERE/packaging/lib/inside.sh" lint "$preset" "$@" || status=$?
      exit "$status"
      ;;
  esac
  export TANDEM_ROOT=$root
  local -a targets=(all)
  case $command in
    run) mapfile -t targets < <(programs_for "${1:-}") ;;
    bench) targets=(tandem-bench) ;;
    soak) targets=(tandem tandem-trainer) ;;
  esac
  [[ $command != build || $# == 0 ]] || targets=("$@")
  [[ $command == built ]] || link_build "$root" "$preset"
  local libraries
  libraries=$(root_libraries "$root")
  [[ $command == built ]] || LDFLAGS="-Wl,--dynamic-linker=$(root_loader "$root") -Wl,--disable-new-dtags,-rpath,$libraries" \
    TANDEM_CMAKE_OPTIONS="-DPython3_EXECUTABLE=$root/usr/bin/python3" \
    chroot_run "$root" /bin/bash "$HERE/packaging/lib/inside.sh" build "$preset" "${targets[@]}" || exit
  export PATH=$HOST_PATH
  unset CC CXX TANDEM_INSIDE
  case $command in
    build) exit 0 ;;
    run | built) exec "$HERE/build/$preset/bin/tandem" "$@" ;;
    bench) exec "$HERE/build/$preset/bin/tandem-bench" "$@" ;;
    soak) TANDEM_BINARY=$HERE/build/$preset/bin/tandem exec bash "$HERE/tests/soak/run.sh" "$@" ;;
    test) exec "$root/usr/bin/ctest" --test-dir "$HERE/build/$preset" --output-on-failure -j"$(nproc)" "$@" ;;
  esac
}

# link_build ROOT PRESET: the checkout's build directory is the one in ROOT's copy.
link_build() {
  local here=$HERE/build/$2 there=$1$HERE/build/$2
  mkdir -p "$HERE/build" "$there"
  [[ -L $here || ! -d $here ]] || rm -rf "$here"
  ln -sfn "$there" "$here"
}
