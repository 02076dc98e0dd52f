# shellcheck shell=bash
# Builds a Debian 13 root in the cache directory: apt resolves and downloads with state of its
# own, dpkg-deb unpacks. No privilege is needed and nothing on the host is changed. Maintainer
# scripts are not run; finish_root makes the few things of theirs that a compiler needs.
# What only some commands need is added to the root when one of them first runs. In a root .tandem
# holds its state: `complete`, `status` (what is unpacked, as apt reads it), `alternatives`, and
# `added-SECTION` (the key of that section).

SUITE=trixie

debian_arch() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) die "no environment for this processor: $(uname -m)" "Known: x86_64, aarch64." ;;
  esac
}

multiarch() { echo "$(uname -m)-linux-gnu"; }

# write_apt_config DIR ROOT: apt state under DIR, which knows what ROOT has; proxies and the like still come
# from the host.
write_apt_config() {
  local dir=$1 status=$2/.tandem/status
  mkdir -p "$dir/state/lists/partial" "$dir/archives/partial" "$dir/cache" || return
  if [[ -e $status ]]; then cp "$status" "$dir/status"; else : >"$dir/status"; fi
  cat >"$dir/apt.conf" <<END
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg;
#clear APT::Architectures;
APT::Architecture "$(debian_arch)";
APT::Architectures { "$(debian_arch)"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Get::Assume-Yes "true";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "$dir/state";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Cache::archives "$dir/archives";
Dir::Log "$dir";
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
END
}

# fetch_index DIR: tries the host's mirrors in turn, first with Debian's own keyring.
fetch_index() {
  local dir=$1 id codename uri keyring tried=0
  read -r id codename _ <<<"$(host_release)"
  local -a mirrors=()
  if [[ -n ${TANDEM_MIRROR:-} ]]; then
    mirrors=("$TANDEM_MIRROR")
  else
    mapfile -t mirrors < <(mirror_candidates "$(debian_arch)" "$codename")
  fi
  for uri in "${mirrors[@]}"; do
    for keyring in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp} ''; do
      [[ -z $keyring || -r $keyring ]] || continue
      tried=1
      printf 'deb %s %s %s main\n' "${keyring:+[signed-by=$keyring]}" "$uri" "$SUITE" >"$dir/sources.list"
      if apt-get -c "$dir/apt.conf" -o APT::Update::Error-Mode=any update; then return 0; fi
    done
  done
  if ((tried == 0)); then
    echo "No Debian mirror in the apt sources of this host ($id $codename)."
    echo "Set TANDEM_MIRROR to the base address of one, and install debian-archive-keyring."
  else
    echo "Debian 13 could not be read from ${TANDEM_MIRROR:-the mirror in this host\'s apt sources}."
    echo "Check the network and proxy settings, or set TANDEM_MIRROR to another mirror."
  fi
  return 1
}

# fetch_packages DIR PACKAGE…
fetch_packages() {
  local dir=$1
  shift
  apt-get -c "$dir/apt.conf" --download-only install '?essential' "$@"
}

# unpack DIR ROOT PACKAGE…: only what this resolution chose; an earlier attempt may have left more.
unpack() {
  local dir=$1 root=$2
  shift 2
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64,local} "$dir/none/partial" || return
  [[ -e $root/bin ]] || ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root/" || return
  apt-get -c "$dir/apt.conf" -o "Dir::Cache::archives=$dir/none" --print-uris install '?essential' "$@" |
    sed -n "s/^'[^']*' \([^ ]*\.deb\) .*/\1/p" >"$dir/chosen" || return
  [[ -s $dir/chosen || -s $dir/status ]] || return
  cd "$dir/archives" || return
  # shellcheck disable=SC2016
  xargs -r -P "$(nproc)" -n 1 sh -c 'dpkg-deb -x "$1" "$0" && echo "$1"' "$root" <"$dir/chosen" || return
  # Half of the packages have no such script, which dpkg-deb calls an error.
  { xargs -I{} dpkg-deb -I {} postinst <"$dir/chosen" || true; } 2>/dev/null |
    alternatives_in >>"$root/.tandem/alternatives"
  xargs -I{} sh -c 'dpkg-deb -f {} && echo "Status: install ok installed" && echo' <"$dir/chosen" >>"$root/.tandem/status"
}

# finish_root ROOT
finish_root() {
  local root=$1
  link_alternatives "$root" <"$root/.tandem/alternatives" || return
  "$root/usr/sbin/ldconfig" -r "$root" || return
  # For hosts that have no certificates of their own.
  mkdir -p "$root/etc/ssl/certs" || return
  cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt" || return
  # A user without root could otherwise not remove it.
  chmod -R u+rwX "$root"
}

# fill_root CACHE WHAT ROOT PACKAGE…: says WHAT it does, and downloads and unpacks the packages into ROOT. What has arrived
# is kept in CACHE when it fails.
fill_root() {
  local cache=$1 what=$2 root=$3 apt=$1/apt log
  shift 3
  if ! mkdir -p "$root/.tandem" "$cache/logs" || ! write_apt_config "$apt" "$root"; then
    die "cannot write to $cache" "Set TANDEM_CACHE to a directory of yours with 2 GB free."
  fi
  log=$cache/logs/$(date +%Y%m%d-%H%M%S)
  say "$what"
  step 1 4 "Reading the package index of Debian 13" "$log-1-index.log" fetch_index "$apt" ||
    die "the package index could not be read" "See the lines above, mend the network or the mirror, and run again."
  STEP_COUNTS='^Get:' step 2 4 "Downloading $# packages and what they need" "$log-2-download.log" fetch_packages "$apt" "$@" ||
    die "the packages could not be downloaded" "What has arrived is kept; run again to go on."
  STEP_COUNTS='\.deb$' step 3 4 "Unpacking" "$log-3-unpack.log" unpack "$apt" "$root" "$@" ||
    die "the packages could not be unpacked" "Is there 2 GB free in $cache? Run again after making room."
  step 4 4 "Finishing" "$log-4-finish.log" finish_root "$root" ||
    die "the environment could not be finished" "Run again; if it fails again, report the log."
}

# build_root FINAL PACKAGE…: call it under the cache's lock.
build_root() {
  local final=$1 cache
  shift
  [[ -e $final/.tandem/complete ]] && return 0
  cache=${final%/*}
  rm -rf "$final" "$cache"/tmp-*
  need_space "$cache" 2500 "setting up the environment"
  local temporary=$cache/tmp-$$
  fill_root "$cache" "preparing the environment once, in $final (about a minute and a half, 1.5 GB)" "$temporary/root" "$@"
  if ! touch "$temporary/root/.tandem/used" "$temporary/root/.tandem/complete" || ! mv "$temporary/root" "$final"; then
    die "the environment could not be put in place" "Is there room in $cache? Run again."
  fi
  rm -rf "$temporary" "$cache/apt"
  prune_roots "$cache" "$final"
}

# section_added ROOT SECTION KEY
section_added() { [[ $(cat "$1/.tandem/added-$2" 2>/dev/null) == "$3" ]]; }

# add_section ROOT SECTION KEY PACKAGE…: puts more packages into a root that is complete; call it under the cache's
# lock. A run that was cut short is made again: unpacking twice does no harm.
add_section() {
  local root=$1 section=$2 key=$3 cache
  shift 3
  section_added "$root" "$section" "$key" && return 0
  cache=${root%/*}
  need_space "$cache" 1500 "adding to the environment"
  fill_root "$cache" "adding to the environment what '$section' needs" "$root" "$@"
  printf '%s\n' "$key" >"$root/.tandem/added-$section" ||
    die "the environment could not be completed" "Is there room in $cache? Run again."
  rm -rf "$cache/apt"
}

root_in_use() {
  # Shown by path in its file system, which may not be the path that we know.
  grep -qsF "/${1##*/}/usr" /proc/[0-9]*/mountinfo /proc/[0-9]*/maps
}

# prune_roots CACHE CURRENT: removes roots of other package lists that nobody used for two weeks.
prune_roots() {
  local root
  find "$1" -maxdepth 1 -name 'root-*' ! -path "$2" | while IFS= read -r root; do
    [[ -z $(find "$root/.tandem/used" -mtime -14 2>/dev/null) ]] || continue
    root_in_use "$root" || rm -rf "$root"
  done
}
