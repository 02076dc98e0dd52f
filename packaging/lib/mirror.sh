# shellcheck shell=bash
# Finds where the host gets its Debian packages. apt itself reads the sources, in either form.

# host_release: ID, codename and version number of the host.
host_release() {
  local ID='' VERSION_ID='' VERSION_CODENAME=''
  # shellcheck disable=SC1090
  . "${TANDEM_OS_RELEASE:-/etc/os-release}" 2>/dev/null || true
  printf '%s %s %s\n' "${ID:-unknown}" "${VERSION_CODENAME:-none}" "${VERSION_ID:-0}"
}

# mirror_candidates ARCH CODENAME [APT OPTION…]: base URIs that offer CODENAME's `main`, best first.
# A repository that has CODENAME-updates as well, or is called `debian`, is Debian's own
# rather than a third party's that uses the same suite name.
mirror_candidates() {
  local arch=$1 codename=$2
  shift 2
  apt-get update --print-uris "$@" 2>/dev/null | awk -v arch="$arch" -v codename="$codename" '
    match($0, /\/dists\/[^\/]+\/main\/binary-/) && index($0, "binary-" arch "/Packages") {
      uri = substr($0, 2, RSTART - 2)
      split(substr($0, RSTART + 7), part, "/")
      suite = part[1]
      if (uri ~ /^cdrom:/) next
      if (!(uri in score)) { score[uri] = 0; order[++n] = uri }
      if (suite == codename || suite ~ /^(old)*stable$/) { has[uri] = 1 }
      if (suite ~ /-updates$/) score[uri] += 2
      if (uri ~ /\/debian\/?$/ || uri ~ /debian\.list$/) score[uri] += 1
    }
    END {
      for (want = 9; want >= 0; want--)
        for (i = 1; i <= n; i++)
          if (has[order[i]] && score[order[i]] == want) print order[i]
    }'
}
