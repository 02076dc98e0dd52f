# shellcheck shell=bash
# How commands reach Debian 13:
#   native     the host is Debian 13 (or later) and has the packages
#   namespace  a private mount namespace in which /usr is that of the root in the cache
#   chroot     no namespaces, but the user is root: the build runs in a chroot, what it made runs outside

# can_namespace: really tries a mount, since some hosts grant the namespace and refuse the mount.
# A host without the mount command can still enter, by the root's.
can_namespace() {
  if type -P mount >/dev/null; then
    "${UNSHARE[@]}" mount -t tmpfs tmpfs /tmp >/dev/null 2>&1
  else
    "${UNSHARE[@]}" true >/dev/null 2>&1
  fi
}

# The process stays the same through unshare and exec, so its pid, signals and exit code are
# the program's own. A plain user maps itself to root to mount, and back before the command runs.
if ((EUID == 0)); then UNSHARE=(unshare --mount); else UNSHARE=(unshare --user --map-root-user --mount); fi

is_debian_13() {
  local id codename version
  read -r id codename version <<<"$(host_release)"
  [[ $id == debian ]] || return 1
  [[ $codename == sid ]] || ((${version%%.*} >= 13))
}

# missing_packages PACKAGE…
missing_packages() {
  local package
  local -A installed=()
  while read -r package; do installed[$package]=1; done < <(
    # shellcheck disable=SC2016
    dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p')
  for package in "$@"; do [[ -n ${installed[$package]:-} ]] || printf '%s\n' "$package"; done
}

# detect_isolation PACKAGE…: prints the mode, or fails with the reason.
detect_isolation() {
  case ${TANDEM_ISOLATION:-auto} in
    native) echo native && return ;;
    namespace)
      can_namespace || die "TANDEM_ISOLATION is 'namespace', but none can be made here" "Leave it unset to have the way chosen."
      echo namespace && return
      ;;
    chroot)
      ((EUID == 0)) || die "TANDEM_ISOLATION is 'chroot', which only root can use" "Leave it unset to have the way chosen."
      echo chroot && return
      ;;
    auto) ;;
    *) die "TANDEM_ISOLATION is '$TANDEM_ISOLATION'" "Known: auto, native, namespace, chroot." ;;
  esac
  if is_debian_13 && { ((EUID == 0)) || [[ -z $(missing_packages "$@") ]]; }; then
    echo native
  elif can_namespace; then
    echo namespace
  elif ((EUID == 0)); then
    echo chroot
  else
    die "this user may not create namespaces, and the packages are not installed" \
      "Allow it: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000" \
      "  (with AppArmor also kernel.apparmor_restrict_unprivileged_userns=0)," \
      "or run as root, or use packaging/Dockerfile, or Debian 13 with the packages of packaging/packages.txt."
  fi
}

install_native() {
  local log=$1
  shift
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) && return 0
  ((EUID == 0)) || die "packages are missing: ${missing[*]}" "Install them with apt-get install as root."
  step 1 2 "Reading the package index" "$log-index.log" apt-get update ||
    die "apt-get update failed" "Mend the apt sources or the network, and run again."
  step 2 2 "Installing ${#missing[@]} packages" "$log-install.log" \
    env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}" ||
    die "the packages could not be installed" "See the lines above; then run again."
}

# clean_environment: drops what points at the host's compilers and interpreters.
clean_environment() {
  unset LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH PKG_CONFIG_PATH
  unset PYTHONPATH PYTHONHOME PYENV_VERSION PYENV_ROOT VIRTUAL_ENV CMAKE_PREFIX_PATH CMAKE_GENERATOR
  unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS BASH_ENV ENV CDPATH
  export CC=${TANDEM_CC:-/usr/bin/gcc} CXX=${TANDEM_CXX:-/usr/bin/g++}
  local cuda
  cuda=$(realpath -e "${CUDA_HOME:-/usr/local/cuda}" 2>/dev/null) || cuda=
  export PATH=/usr/sbin:/usr/bin${cuda:+:$cuda/bin}
  case ${LC_ALL:-${LANG:-C}} in
    C | POSIX | C.UTF-8 | C.utf8) ;;
    *) export LC_ALL=C.UTF-8 ;; # the root holds no other
  esac
}

# offer_certificates ROOT: the root's, where the host has none.
offer_certificates() {
  [[ -e /etc/ssl/certs/ca-certificates.crt || -n ${SSL_CERT_FILE:-} ]] && return 0
  local bundle=$1/etc/ssl/certs/ca-certificates.crt
  export SSL_CERT_FILE=$bundle
  export PIP_CERT=${PIP_CERT:-$bundle} REQUESTS_CA_BUNDLE=${REQUESTS_CA_BUNDLE:-$bundle}
}

# enter_namespace ROOT COMMAND…: does not return. NAMED_PATHS are the host's paths to keep visible.
enter_namespace() {
  local root=$1
  shift
  local -a extra=()
  if ((${#NAMED_PATHS[@]} > 0)); then
    mapfile -t extra < <(paths_to_mount "$root" "${NAMED_PATHS[@]}")
    ((${#extra[@]} == 0)) || make_placeholders "$root" "${extra[@]}"
  fi
  offer_certificates "$root"
  exec "${UNSHARE[@]}" /bin/bash --norc "$HERE/packaging/lib/enter.sh" \
    "$root" "$EUID" "$(id -g)" "${#extra[@]}" "${extra[@]}" "$@"
}
