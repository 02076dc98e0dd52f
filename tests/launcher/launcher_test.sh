#!/bin/bash
# Tests of the launcher: launcher_test.sh CHECKOUT. Needs no network and no environment: the parts
# are sourced, and whole runs use a fake root or none. Prints one line per test.
# shellcheck disable=SC2317 # tests are called by name
set -uo pipefail

CHECKOUT=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
unset TANDEM_INSIDE TANDEM_ENVIRONMENT TANDEM_ISOLATION TANDEM_MIRROR TANDEM_ROOT
passed=0 failed=0 skipped=0

# shellcheck disable=SC2034 # read by the parts
HERE=$CHECKOUT
for part in common packages mirror alternatives root hostpaths isolation venv peers; do
  # shellcheck source=/dev/null
  . "$CHECKOUT/packaging/lib/$part.sh"
done

expect() {
  if [[ $2 == "$3" ]]; then return 0; fi
  printf '    %s\n      expected: %q\n      got:      %q\n' "$1" "$2" "$3"
  return 1
}

run() {
  local output status=0
  output=$("$1" 2>&1) || status=$?
  case $status in
    0) passed=$((passed + 1)) && printf 'ok      %s\n' "$1" ;;
    77) skipped=$((skipped + 1)) && printf 'skipped %s: %s\n' "$1" "$output" ;;
    *) failed=$((failed + 1)) && printf 'FAILED  %s\n%s\n' "$1" "$output" ;;
  esac
}

skip() {
  echo "$1"
  exit 77
}

# --- the package list ---

sample_list() { printf '# c\n\n[base]\ng++  # why\n cmake\n[lint]\nclang\n' >"$WORK/list"; }

list_is_read_by_section() {
  sample_list
  expect base "g++ cmake" "$(packages_in "$WORK/list" base | xargs)" &&
    expect both "g++ cmake clang" "$(packages_in "$WORK/list" base lint | xargs)" &&
    expect none "" "$(packages_in "$WORK/list" other)"
}

key_changes_with_packages_and_with_nothing_else() {
  sample_list
  local before after
  before=$(environment_key "$WORK/list" base)
  printf '# c2\n[base]\ncmake\ng++\n[lint]\nclang-19\n' >"$WORK/list"
  expect 'order, comments, other sections' "$before" "$(environment_key "$WORK/list" base)" || return
  printf '[base]\ncmake\ng++\nmold\n' >"$WORK/list"
  after=$(environment_key "$WORK/list" base)
  [[ $before != "$after" ]]
}

the_real_list_holds_each_package_once() {
  local names
  names=$(packages_in "$CHECKOUT/packaging/packages.txt" base test lint chroot)
  [[ -n $names ]] && expect duplicates "" "$(sort <<<"$names" | uniq -d)"
}

# --- mirrors ---

mirrors() {
  mirror_candidates amd64 bookworm -o "Dir::Etc::sourcelist=$WORK/sources.list" -o "Dir::Etc::sourceparts=$WORK/parts" \
    -o APT::Architecture=amd64 -o "Dir::State=$WORK/state" -o "Dir::Cache=$WORK/cache" | xargs
}

reset_sources() {
  command -v apt-get >/dev/null || skip "no apt-get"
  rm -rf "$WORK/parts" "$WORK/sources.list"
  mkdir -p "$WORK/parts" "$WORK/state/lists/partial" "$WORK/cache/archives/partial"
  : >"$WORK/sources.list"
}

mirror_from_one_line_sources() {
  reset_sources
  cat >"$WORK/sources.list" <<'END'
# deb http://commented.invalid/debian bookworm main
deb-src http://source.invalid/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/debian bookworm main contrib
deb http://mirror.invalid/debian-security bookworm-security main
END
  expect mirror "http://mirror.invalid/debian" "$(mirrors)"
}

mirror_from_deb822_sources() {
  reset_sources
  cat >"$WORK/parts/debian.sources" <<'END'
Types: deb deb-src
URIs: http://mirror.invalid/pub/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.invalid/debian
Suites: bookworm
Components: main
Enabled: no
END
  expect mirror "http://mirror.invalid/pub/debian" "$(mirrors)"
}

mirror_list_files_are_kept() {
  reset_sources
  echo 'deb mirror+file:/etc/apt/mirrors/debian.list bookworm main' >"$WORK/sources.list"
  expect mirror "mirror+file:/etc/apt/mirrors/debian.list" "$(mirrors)"
}

debian_goes_before_third_parties() {
  reset_sources
  cat >"$WORK/sources.list" <<'END'
deb http://vendor.invalid/apt bookworm main
deb http://other.invalid/linux/debian bookworm stable
deb http://mirror.invalid/debian bookworm main
deb http://mirror.invalid/debian bookworm-updates main
END
  expect order "http://mirror.invalid/debian http://vendor.invalid/apt" "$(mirrors)"
}

no_mirror_is_no_candidate() {
  reset_sources
  expect none "" "$(mirrors)"
}

# --- releases ---

debian_13_is_told_from_others() {
  local line want
  while read -r want line; do
    tr ' ' '\n' <<<"$line" >"$WORK/os-release"
    # shellcheck disable=SC2030
    export TANDEM_OS_RELEASE=$WORK/os-release
    if is_debian_13; then expect "$line" "$want" yes || return; else expect "$line" "$want" no || return; fi
  done <<'END'
yes ID=debian VERSION_ID="13" VERSION_CODENAME=trixie
yes ID=debian VERSION_ID="14" VERSION_CODENAME=forky
no ID=debian VERSION_ID="12" VERSION_CODENAME=bookworm
no ID=ubuntu VERSION_ID="24.04" VERSION_CODENAME=noble
no ID=alpine
END
}

# --- links that maintainer scripts make ---

alternatives_are_read_and_the_highest_priority_wins() {
  mkdir -p "$WORK/alt/usr/bin" "$WORK/alt/usr/lib/open" "$WORK/alt/usr/lib/ref"
  touch "$WORK/alt/usr/bin/gcc" "$WORK/alt/usr/lib/open/libblas.so.3" "$WORK/alt/usr/lib/ref/libblas.so.3"
  alternatives_in <<'END' | link_alternatives "$WORK/alt"
  update-alternatives --quiet \
    --install /usr/bin/cc cc /usr/bin/gcc 20 \
    #--slave /usr/share/man/man1/cc.1.gz cc.1.gz /usr/share/man/man1/gcc.1.gz
update-alternatives --install /usr/lib/libblas.so.3 \
                    libblas.so.3 /usr/lib/ref/libblas.so.3 10
update-alternatives --install /usr/lib/libblas.so.3 libblas.so.3 /usr/lib/open/libblas.so.3 100
update-alternatives --install /usr/bin/absent absent /usr/bin/not-there 5
update-alternatives --install "$link" name "$path" 5
update-alternatives --remove cc /usr/bin/gcc
END
  expect cc gcc "$(readlink "$WORK/alt/usr/bin/cc")" &&
    expect blas open/libblas.so.3 "$(readlink "$WORK/alt/usr/lib/libblas.so.3")" &&
    [[ ! -L $WORK/alt/usr/bin/absent ]]
}

# --- paths that a command line names ---

paths_are_found_in_every_form() {
  ln -sfn /usr/share "$WORK/link"
  cd "$WORK" || return
  expect plain /usr/share "$(named_paths /usr/share)" &&
    expect option /usr/share "$(named_paths --model-repository=/usr/share)" &&
    expect value /usr/share "$(named_paths input=@/usr/share)" &&
    expect at /usr/share "$(named_paths @/usr/share)" &&
    expect 'through a link' /usr/share "$(named_paths link)" &&
    expect 'relative' /usr/share "$(named_paths ../../../../../../usr/share)" &&
    expect 'not there yet' /usr/share "$(named_paths --json=/usr/share/zz-none/a.json)" &&
    expect 'outside /usr' "" "$(named_paths "$WORK" /etc/passwd --seconds 10 serve /nonexistent/x)"
}

paths_with_odd_names_are_found() {
  # Nothing is made under /usr: the nearest directory that is there stands for a path.
  ln -sfn '/usr/share/zz none/a' "$WORK/a link"
  ln -sfn loop "$WORK/loop"
  cd "$WORK" || return
  expect spaces /usr/share "$(named_paths '/usr/share/zz none/a b')" &&
    expect 'a link with a space' /usr/share "$(named_paths --model-repository 'a link')" &&
    expect 'what looks like a pattern' /usr/share "$(named_paths '/usr/share/zz*[a]/@')" &&
    expect 'what looks like an option' "" "$(named_paths --x -e '@' '*' '')" &&
    expect 'a loop of links' /usr/share "$(named_paths loop /usr/share)" &&
    expect 'below /lib' "$(realpath -m /lib)" "$(named_paths /lib/zz-none | sed 's,^\(/usr/lib\).*,\1,')"
}

paths_in_a_file_of_options_are_found() {
  printf '# "%s"\nmodel-repository = ["/usr/share/zz none", \x27/usr/bin\x27]\nhttp-port = 8000\n' "$WORK" >"$WORK/options.toml"
  expect flag $'/usr/bin\n/usr/share' "$(configured_paths serve --config "$WORK/options.toml")" &&
    expect 'flag with =' $'/usr/bin\n/usr/share' "$(configured_paths serve --config="$WORK/options.toml")" &&
    expect variable $'/usr/bin\n/usr/share' "$(TANDEM_CONFIG=$WORK/options.toml configured_paths serve)" &&
    expect 'no such file' "" "$(configured_paths serve --config "$WORK/absent.toml")" &&
    expect 'no value' "" "$(configured_paths serve --config)"
}

only_what_the_root_lacks_is_mounted() {
  local root=$WORK/fakeroot
  mkdir -p "$root/usr/share/doc" "$root/.tandem"
  expect 'in the root' "" "$(paths_to_mount "$root" /usr/share/doc /usr/share /usr /usr/local/x)" &&
    expect 'shortest part' /usr/share/zz "$(paths_to_mount "$root" /usr/share/zz/a/b /usr/share/zz/c)" || return
  make_placeholders "$root" /usr/share/zz
  expect 'a placeholder is not content' /usr/share/zz "$(paths_to_mount "$root" /usr/share/zz/a/b)"
}

# --- locks and steps ---

second_run_waits_for_the_first() {
  local log=$WORK/order
  slow() { sleep 0.5 && echo first >>"$log"; }
  quick() { echo second >>"$log"; }
  with_lock "$WORK/lock" waiting slow &
  sleep 0.2
  local told
  told=$(with_lock "$WORK/lock" "waiting for another" quick 2>&1)
  wait
  expect order "first second" "$(xargs <"$log")" && expect told "tandem: waiting for another" "$told"
}

lock_is_not_inherited_and_status_is_kept() {
  leave() {
    # A subshell that does not become another program keeps every descriptor that it was born with.
    (while [[ ! -e $WORK/end ]]; do sleep 0.1; done) &
    return 3
  }
  local status=0 free=yes
  with_lock "$WORK/lock2" waiting leave >/dev/null || status=$?
  flock --nonblock "$WORK/lock2" true || free=no
  : >"$WORK/end"
  expect status 3 "$status" && expect free yes "$free"
}

signal_stops_a_step_at_once() {
  local status=0 begun=$SECONDS pid
  (step 1 1 "Sleeping" "$WORK/sleep.log" sleep 30 2>/dev/null) &
  pid=$!
  sleep 0.3
  kill -TERM "$pid"
  wait "$pid" || status=$?
  expect status 143 "$status" && ((SECONDS - begun < 5))
}

interrupted_step_says_that_it_can_go_on() {
  local output status=0
  begin() { : >"$WORK/begun" && sleep 30; }
  output=$({
    rm -f "$WORK/begun"
    (step 1 1 "Sleeping" "$WORK/sleep.log" begin) &
    until [[ -e $WORK/begun ]]; do sleep 0.05; done
    sleep 0.1
    kill -TERM "$!"
    wait "$!"
  } 2>&1) || status=$?
  expect status 143 "$status" && [[ $output == *"stopped; the same command goes on"* ]]
}

signal_that_comes_while_a_command_is_started_stops_it() {
  local status=0 pid
  # As early as it can come: the command has been started, and who it is has not been noted.
  cat >"$WORK/early.sh" <<END
. "$CHECKOUT/packaging/lib/common.sh"
set -T
trap '[[ \$BASH_COMMAND != "JOB="* ]] || kill -TERM \$\$' DEBUG
begin() { echo "\$BASHPID" >"$WORK/early.pid" && exec sleep 30; }
interruptible begin
END
  rm -f "$WORK/early.pid"
  bash "$WORK/early.sh" 2>/dev/null || status=$?
  expect status 143 "$status" || return
  # It may not even have begun.
  sleep 0.3
  [[ -s $WORK/early.pid ]] || return 0
  pid=$(<"$WORK/early.pid")
  ! kill -0 "$pid" 2>/dev/null || { kill -KILL "$pid" && expect "the command" gone "still running"; }
}

signal_is_heard_by_a_command_that_misses_it_once() {
  local status=0
  cat >"$WORK/deaf.sh" <<END
. "$CHECKOUT/packaging/lib/common.sh"
begin() {
  trap 'trap - TERM' TERM
  : >"$WORK/deaf"
  for ((round = 0; round < 600; ++round)); do sleep 0.05; done
  : >"$WORK/undisturbed"
}
interruptible begin
END
  bash "$WORK/deaf.sh" 2>/dev/null &
  for ((round = 0; round < 1200; ++round)); do
    [[ ! -e $WORK/deaf ]] || break
    sleep 0.05
  done
  kill -TERM "$!"
  wait "$!" || status=$?
  expect status 143 "$status" && expect "its end" stopped "$([[ ! -e $WORK/undisturbed ]] && echo stopped)"
}

failed_step_shows_its_log() {
  broken() { echo "the reason" && return 4; }
  local status=0 output
  output=$(step 2 4 "Trying" "$WORK/step.log" broken 2>&1) || status=$?
  expect status 4 "$status" && [[ $output == *"[2/4] failed"*"$WORK/step.log"*"the reason"* ]]
}

interrupted_set_up_is_never_used() {
  local cache=$WORK/cache2
  mkdir -p "$cache/tmp-1/root/.tandem" "$cache/root-k/usr"
  # Every step succeeds at once; only the order of things is under test.
  fetch_index() { :; }
  fetch_packages() { :; }
  unpack() { :; }
  finish_root() { [[ ! -e $cache/tmp-1 && ! -e $cache/root-k ]]; }
  build_root "$cache/root-k" g++ && [[ -e $cache/root-k/.tandem/complete ]] &&
    expect leftovers "" "$(find "$cache" -maxdepth 1 -name 'tmp-*')"
}

failed_set_up_leaves_no_root() {
  local cache=$WORK/cache3
  mkdir -p "$cache"
  fetch_index() { :; }
  fetch_packages() { echo "no route" && return 1; }
  local output
  output=$(build_root "$cache/root-k" g++ 2>&1) && return 1
  [[ ! -e $cache/root-k && $output == *"no route"*"run again"* ]]
}

set_up_wants_room_on_the_disk() {
  local output status=0
  df() { printf 'x\nx 1 1 51200 1 /\n'; }
  fetch_index() { :; }
  mkdir -p "$WORK/cache5"
  output=$(build_root "$WORK/cache5/root-k" g++ 2>&1) || status=$?
  expect status 1 "$status" && [[ $output == *"only 50 MB are free"*TANDEM_CACHE* ]]
}

a_section_is_added_once_and_again_when_it_changes_or_failed() {
  local cache=$WORK/cache6 root=$WORK/cache6/root-k count=$WORK/cache6/count
  mkdir -p "$root/.tandem"
  : >"$count"
  fetch_index() { :; }
  fetch_packages() { :; }
  unpack() { echo "${*:3}" >>"$count"; }
  finish_root() { return "${FINISH:-0}"; }
  (FINISH=1 add_section "$root" lint one clang) >/dev/null 2>&1 && return 1
  section_added "$root" lint one && return 1
  add_section "$root" lint one clang && add_section "$root" lint one clang && add_section "$root" test one chromium &&
    add_section "$root" lint two clang-tidy || return
  expect unpacked "clang clang chromium clang-tidy" "$(xargs <"$count")" && section_added "$root" test one
}

unused_roots_are_pruned_and_others_kept() {
  local cache=$WORK/cache4 name
  for name in current recent stale; do
    mkdir -p "$cache/root-zz-$name/.tandem"
    : >"$cache/root-zz-$name/.tandem/used"
  done
  touch -d '20 days ago' "$cache/root-zz-stale/.tandem/used" "$cache/root-zz-current/.tandem/used"
  prune_roots "$cache" "$cache/root-zz-current"
  expect kept "root-zz-current root-zz-recent" "$(find "$cache" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs)"
}

# --- whole runs with a fake program ---

# A checkout whose build is a no-op and whose program is a script, run in native mode.
fake_checkout() {
  local dir=$WORK/checkout
  mkdir -p "$dir/build/release/bin" "$dir/tools"
  cp -r "$CHECKOUT/tandem" "$CHECKOUT/packaging" "$dir/"
  : >"$dir/CMakePresets.json"
  printf '[base]\n' >"$dir/packaging/packages.txt"
  cat >"$dir/build/release/bin/tandem" <<'END'
#!/bin/bash
case $1 in
  exit) exit "$2" ;;
  show) printf '<%s>' "${@:2}" && pwd ;;
  launcher) echo "$TANDEM_LAUNCHER" ;;
  wait)
    trap 'exit 51' TERM
    trap 'exit 52' HUP
    echo "$$" >"$2"
    while :; do sleep 0.05; done
    ;;
esac
END
  chmod +x "$dir/build/release/bin/tandem"
  # The build is taken as up to date: a ninja that does nothing, if the host has none.
  printf '#!/bin/sh\nexit 0\n' >"$dir/tools/ninja"
  chmod +x "$dir/tools/ninja"
  sed -i "s|export PATH=/usr/sbin:/usr/bin|export PATH=$dir/tools:/usr/sbin:/usr/bin|" "$dir/packaging/lib/isolation.sh"
  local key
  key=$(environment_key "$dir/packaging/packages.txt" base)
  echo "native-$key" >"$dir/build/release/.tandem-environment"
  sleep 0.02
  : >"$dir/build/release/build.ninja"
  echo "$dir"
}

launch() { TANDEM_ISOLATION=native TANDEM_CACHE=$WORK/launch-cache "$WORK/checkout/tandem" "$@"; }

exit_code_and_arguments_pass_through() {
  fake_checkout >/dev/null
  local status=0
  launch exit 7 || status=$?
  expect status 7 "$status" || return
  cd "$WORK" || return
  expect arguments "<a b><><*>$WORK" "$(launch show 'a b' '' '*')"
}

the_program_is_told_who_can_build() {
  fake_checkout >/dev/null
  expect launcher "$WORK/checkout/tandem" "$(launch launcher)" || return
  # As the demo does, from within: nothing is prepared again, and what is asked for is built.
  printf '#!/bin/sh\necho "$@" >>%s\n' "$WORK/built" >"$WORK/checkout/tools/ninja"
  : >"$WORK/built"
  TANDEM_INSIDE=native TANDEM_ENVIRONMENT=$(cat "$WORK/checkout/build/release/.tandem-environment") \
    "$WORK/checkout/tandem" build tandem-trainer || return
  [[ $(cat "$WORK/built") == *"release tandem-trainer" ]] || expect targets '… release tandem-trainer' "$(cat "$WORK/built")"
}

signals_reach_the_program_under_the_same_pid() {
  fake_checkout >/dev/null
  local signal want pid status
  while read -r signal want; do
    rm -f "$WORK/pid"
    TANDEM_ISOLATION=native TANDEM_CACHE=$WORK/launch-cache "$WORK/checkout/tandem" wait "$WORK/pid" &
    pid=$!
    for _ in {1..100}; do
      [[ ! -s $WORK/pid ]] || break
      sleep 0.05
    done
    expect pid "$pid" "$(cat "$WORK/pid")" || return
    kill -"$signal" "$pid"
    status=0
    wait "$pid" || status=$?
    expect "status after $signal" "$want" "$status" || return
  done <<<$'TERM 51\nHUP 52'
}

namespace_keeps_pid_identity_and_exit_code() {
  can_namespace || skip "no namespaces here"
  # The host's own /usr serves as the root: what is under test is the way in and out.
  local root=$WORK/hostroot status=0
  mkdir -p "$root/usr" "$root/etc" "$root/.tandem"
  cp /etc/ld.so.cache "$root/etc/"
  # shellcheck disable=SC2016
  "${UNSHARE[@]}" bash -c 'mount --rbind /usr "$1/usr" && exec bash "$2/packaging/lib/enter.sh" "$1" "$3" "$4" 0 \
    bash -c "id -u; exit 9"' - "$root" "$CHECKOUT" "$EUID" "$(id -g)" >"$WORK/out" || status=$?
  expect status 9 "$status" && expect uid "$EUID" "$(cat "$WORK/out")"
}

# without_namespaces: a PATH in which none can be made.
without_namespaces() {
  mkdir -p "$WORK/poor"
  printf '#!/bin/sh\nexit 1\n' >"$WORK/poor/unshare"
  chmod 755 "$WORK/poor/unshare" "$WORK" "$WORK/poor"
  echo "$WORK/poor:$PATH"
}

root_without_namespaces_uses_chroot() {
  ((EUID == 0)) || skip "not root"
  is_debian_13 && skip "native here"
  local PATH
  PATH=$(without_namespaces)
  expect mode chroot "$(detect_isolation no-such-package)"
}

plain_user_without_namespaces_is_told_what_to_do() {
  local output status=0
  local -a as=()
  if ((EUID == 0)); then as=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
  "${as[@]}" test -r "$CHECKOUT/tandem" || skip "another user cannot read $CHECKOUT"
  output=$(PATH=$(without_namespaces) TANDEM_CACHE=$WORK/none "${as[@]}" bash "$CHECKOUT/tandem" version 2>&1) || status=$?
  expect status 1 "$status" || return
  [[ $output == *"may not create namespaces"*sysctl*Dockerfile* ]] || expect output '… sysctl …' "$output" || return
  for TANDEM_ISOLATION in namespace chroot; do
    output=$(export TANDEM_ISOLATION && PATH=$(without_namespaces) TANDEM_CACHE=$WORK/none "${as[@]}" \
      bash "$CHECKOUT/tandem" version 2>&1) && return 1
    [[ $output == *"TANDEM_ISOLATION is '$TANDEM_ISOLATION'"* ]] || expect output '… TANDEM_ISOLATION …' "$output" || return
  done
}

cache_is_found_without_a_home() {
  expect home "$WORK/.cache/tandem" "$(unset XDG_CACHE_HOME TANDEM_CACHE && HOME=$WORK cache_dir)" &&
    expect 'no home' "/tmp/tandem-$EUID/.cache/tandem" "$(unset XDG_CACHE_HOME TANDEM_CACHE HOME && cache_dir)" &&
    expect relative "$PWD/some cache" "$(TANDEM_CACHE='some cache' cache_dir)"
}

a_cache_that_cannot_be_written_is_told() {
  local output
  : >"$WORK/file"
  output=$(make_cache "$WORK/file/cache" 2>&1) && return 1
  [[ $output == *"cannot write to $WORK/file/cache"*TANDEM_CACHE* ]]
}

a_checkout_that_cannot_be_written_is_told() {
  fake_checkout >/dev/null
  rm -rf "$WORK/checkout/build"
  : >"$WORK/checkout/build"
  local output status=0
  output=$(launch exit 0 2>&1) || status=$?
  rm -f "$WORK/checkout/build"
  expect status 1 "$status" && [[ $output == *"cannot write to $WORK/checkout/build"*writable* ]]
}

clean_removes_only_what_is_ours() {
  fake_checkout >/dev/null
  local cache=$WORK/mixed
  mkdir -p "$cache/root-1" "$cache/ccache" "$cache/logs" "$cache/photos"
  TANDEM_CACHE=$cache "$WORK/checkout/tandem" clean --cach 2>/dev/null && return 1
  [[ -d $WORK/checkout/build && -d $cache/root-1 ]] || return
  TANDEM_CACHE=$cache "$WORK/checkout/tandem" clean --cache 2>/dev/null || return
  expect kept photos "$(ls "$cache")" && [[ ! -e $WORK/checkout/build ]]
}

a_preset_that_is_not_known_touches_nothing() {
  fake_checkout >/dev/null
  local before output status command preset
  : >"$WORK/checkout/build/kept"
  before=$(find "$WORK/checkout" | sort)
  for command in test build; do
    for preset in '' ../build nonsense; do
      status=0
      output=$(launch "$command" "--preset=$preset" 2>&1) || status=$?
      expect "status of $command --preset=$preset" 2 "$status" || return
      [[ $output == *"no preset '$preset'"*"Known: release"* ]] || expect output '… Known: release …' "$output" || return
      status=0
      launch "$command" --preset "$preset" 2>/dev/null || status=$?
      expect "status of $command --preset $preset" 2 "$status" || return
    done
  done
  expect files "$before" "$(find "$WORK/checkout" | sort)"
}

an_empty_command_is_an_error() {
  fake_checkout >/dev/null
  local output status=0
  output=$(launch '' 2>&1) || status=$?
  expect status 2 "$status" && [[ $output == *"command is empty"*help* ]] &&
    [[ $(launch) == *Commands* ]]
}

unknown_isolation_is_an_error() {
  fake_checkout >/dev/null
  local output status=0
  output=$(TANDEM_ISOLATION=magic TANDEM_CACHE=$WORK/c "$WORK/checkout/tandem" exit 0 2>&1) || status=$?
  expect status 1 "$status" && [[ $output == *"TANDEM_ISOLATION is 'magic'"* ]]
}

doctor_works_without_an_environment() {
  fake_checkout >/dev/null
  rm -rf "$WORK/checkout/build"
  local output
  output=$(TANDEM_CACHE=$WORK/none "$WORK/checkout/tandem" doctor) || return
  [[ $output == *system*isolation*cache*"CPU limit"*"CUDA toolkit"* && ! -e $WORK/none ]]
}

packages_are_provided_whole_or_not_at_all() {
  # shellcheck disable=SC2034 # read by package_cache
  local TANDEM_CACHE=$WORK/provided calls=$WORK/provided.calls
  local folder
  : >"$calls"
  broken_maker() { mkdir -p "$1/half" && return 1; }
  good_maker() { mkdir -p "$1" && echo "$2" >"$1/content" && echo made >>"$calls"; }
  echo 'one==1' >"$WORK/list.txt"
  folder=$(folder_for some "$WORK/list.txt")
  [[ $folder == "$WORK/provided/some-"* ]] || expect folder "$WORK/provided/some-…" "$folder" || return
  ! provide "$folder" broken_maker || return
  [[ ! -e $folder ]] || return
  provide "$folder" good_maker whole && provide "$folder" good_maker again || return
  expect content whole "$(cat "$folder/content")" || return
  expect calls made "$(cat "$calls")" || return
  echo 'one==2' >"$WORK/list.txt"
  [[ $(folder_for some "$WORK/list.txt") != "$folder" ]]
}

peers_are_found_once_they_are_installed() {
  local TANDEM_CACHE=$WORK/peers-cache HERE=$WORK/peers-checkout
  mkdir -p "$HERE/bench/peers"
  echo 'one==1' >"$HERE/bench/peers/one.txt"
  echo 'two==2' >"$HERE/bench/peers/two.txt"
  make_peer() { mkdir -p "$1/bin" && printf '#!/bin/sh\n' >"$1/bin/python" && chmod +x "$1/bin/python"; }
  expect list $'one       not installed: ./tandem bench peers install one\ntwo       not installed: ./tandem bench peers install two' \
    "$(peers list)" || return
  peers install two 2>/dev/null || return
  expect list $'one       not installed: ./tandem bench peers install one\ntwo       installed' "$(peers list)" || return
  local TANDEM_PEER_two=
  export_peers
  expect one '' "${TANDEM_PEER_one:-}" && [[ $TANDEM_PEER_two == "$TANDEM_CACHE"/venv-peer-two-*/bin/python ]]
}

a_peer_that_cannot_be_installed_says_what_to_do() {
  local TANDEM_CACHE=$WORK/failing-cache HERE=$WORK/failing-checkout output status=0
  mkdir -p "$HERE/bench/peers"
  echo 'one==1' >"$HERE/bench/peers/one.txt"
  make_peer() { return 1; }
  output=$(peers install 2>&1) || status=$?
  expect status 1 "$status" || return
  [[ $output == *"packages of one"*"in reach"*"peers install one tries again"* ]] || expect output … "$output" || return
  status=0
  output=$(peers install three 2>&1) || status=$?
  expect status 2 "$status" || return
  [[ $output == *"no peer 'three'"*"Known: one."* ]] || expect output … "$output" || return
  status=0
  (peers nonsense) 2>/dev/null || status=$?
  expect status 2 "$status"
}

no_host_name_is_written_anywhere() {
  local found
  found=$(grep -rnE '(https?|ftp)://[a-z0-9]' "$CHECKOUT/tandem" "$CHECKOUT/packaging" "$CHECKOUT/.ci" "$CHECKOUT/bench/peers" || true)
  expect addresses "" "$found"
}

scripts_pass_shellcheck() {
  command -v shellcheck >/dev/null || skip "shellcheck is not installed"
  cd "$CHECKOUT" && shellcheck -x tandem .ci/run packaging/lib/*.sh tests/launcher/*.sh tests/bench/*.sh tests/integration/*.sh tests/soak/*.sh
}

mapfile -t tests < <(declare -F | awk '{ print $3 }' | grep -xE "$(
  sed -nE 's/^([a-z0-9_]+)\(\) \{$/\1/p' "${BASH_SOURCE[0]}" | grep -vxE \
    'expect|run|skip|sample_list|mirrors|reset_sources|fake_checkout|launch|without_namespaces' | paste -sd'|'
)")
for test in "${tests[@]}"; do run "$test"; done
printf '%s passed, %s skipped, %s failed\n' "$passed" "$skipped" "$failed"
((failed == 0))
