"""Small and read-only disks for a server, without a disk: mounts that only it sees."""
import functools
import os
import pathlib
import subprocess


def _apart():
    """The beginning of a command that runs with mounts of its own."""
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def on_disk(command, folder, options):
    """The command with an empty disk at `folder`; `options` are those of tmpfs."""
    return [*_apart(), "sh", "-c", 'mount -t tmpfs -o "$0" tmpfs "$1" && shift && exec "$@"', options, folder, *command]


@functools.cache
def can_mount():
    return subprocess.run([*_apart(), "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True).returncode == 0


def seen_by(server, path):
    """A path on a disk that only the server sees."""
    return pathlib.Path(f"/proc/{server.pid}/root{path}")


def fill(path, left=0):
    """Takes all room of a disk for the file `path`, but for `left` bytes."""
    written = 0
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                written += file.write(bytes(4096))
        except OSError:
            pass
        file.truncate(max(0, written - left))
