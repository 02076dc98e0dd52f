#!/bin/bash
# Runs in a new mount namespace: enter.sh ROOT UID GID N PATH×N COMMAND…
# Puts ROOT's /usr in place of the host's, keeps the rest, and becomes COMMAND.
# The mounts are arranged in ROOT first, while the host's /usr is still there to mount from.
set -euo pipefail

root=$1 uid=$2 gid=$3 count=$4
shift 4
named=("${@:1:count}")
shift "$count"

if [[ ! -L /lib ]]; then
  echo "tandem: error: /lib is not a link to /usr/lib on this host; install usrmerge, or set TANDEM_ISOLATION=chroot as root" >&2
  exit 1
fi

if ! type -P mount >/dev/null; then
  mount() {
    local loader
    for loader in "$root"/usr/lib64/ld-linux-*.so.* "$root"/usr/lib/ld-linux-*.so.*; do
      [[ ! -e $loader ]] || break
    done
    "$loader" --library-path "$root/usr/lib/$(uname -m)-linux-gnu" "$root/usr/bin/mount" "$@"
  }
fi

mount --bind "$root/usr" "$root/usr"
mount -o remount,bind,ro "$root/usr"
[[ ! -d /usr/local ]] || mount --rbind /usr/local "$root/usr/local"
for path in "${named[@]}"; do mount --rbind "$path" "$root$path"; done

[[ ! -e /etc/ld.so.cache ]] || mount --bind "$root/etc/ld.so.cache" /etc/ld.so.cache
directory=$PWD
mount --rbind "$root/usr" /usr
hash -r # bash remembers where the host kept its commands
# A working directory under /usr is still the one that was covered: look it up again.
cd "$directory"

if ((uid == 0)); then exec "$@"; fi
exec unshare --user --map-user="$uid" --map-group="$gid" -- "$@"
