"""Control groups of our own for a server and what it starts; those with a limit on CPU time."""
import os
import pathlib
import time
import unittest

CGROUPS = pathlib.Path("/sys/fs/cgroup")
PERIOD_US = 100_000


def own_group(controller):
    """The folder of this process's group: of version 1 with that controller, or of version 2."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, name = line.split(":", 2)
        folder = CGROUPS / controllers / name.lstrip("/")
        if controller in controllers.split(",") and (folder / "cgroup.procs").exists():
            return folder, 1
        if not controllers and (CGROUPS / name.lstrip("/") / "cgroup.procs").exists():
            return CGROUPS / name.lstrip("/"), 2
    raise unittest.SkipTest(f"no control group of the controller {controller} can be seen")


def apart():
    """As CpuLimit.within(), of a group without a limit: its threads compete among themselves only. Where no group can be
    made, the command as it is; and what is to be called at the end."""
    try:
        group = CpuLimit(None)
    except unittest.SkipTest:
        return None, lambda: None
    return group.within, group.remove


class Group:
    """Folders of a control group of our own."""
    def __init__(self):
        self.folders = []

    def _make(self, folder):
        folder.mkdir()
        self.folders.append(folder)

    def within(self, command):
        """The command, to be run in the group."""
        enter = "".join(f"echo 0 > '{folder}/cgroup.procs' && " for folder in self.folders)
        return ["sh", "-c", enter + 'exec "$0" "$@"', *command]

    def take(self, *processes):
        """Moves them into the group."""
        self._move(self.folders, processes)

    def release(self, *processes):
        """Moves them to where this process is."""
        self._move([folder.parent for folder in self.folders], processes)

    @staticmethod
    def _move(folders, processes):
        for folder in folders:
            for process in processes:
                (folder / "cgroup.procs").write_text(str(process))

    def remove(self):
        for folder in self.folders:
            for _ in range(1000):  # What was killed leaves a little later.
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.01)


class CpuLimit(Group):
    """A group below our own in which so many cores can be used; None: all. Skips the test where none can be made."""
    def __init__(self, cores):
        super().__init__()
        (own, version) = own_group("cpu")
        name = f"tandem-test-{os.getpid()}-{time.monotonic_ns()}"
        try:
            self._make(own / name)
            self.version = version
            self.set(cores)
            if version == 1 and (use := own_group("cpuacct"))[0] != own:
                self._make(use[0] / name)
        except OSError as error:
            self.remove()
            raise unittest.SkipTest(f"no control group with a CPU limit can be made: {error}") from error

    def set(self, cores):
        """Another limit; None: no more."""
        quota = int(cores * PERIOD_US) if cores else None
        if self.version == 1:
            (self.folders[0] / "cpu.cfs_quota_us").write_text(str(quota or -1))
        else:
            (self.folders[0] / "cpu.max").write_text(f"{quota or 'max'} {PERIOD_US}")

    def find(self, limits):
        """This one among those that a server tells of; None when it is not there."""
        return next((limit for limit in limits if limit["group"] == str(self.folders[0])), None)


class CpuSet(Group):
    """A group below our own whose processes may use these cores only. Skips the test where none can be made."""
    def __init__(self, cores):
        super().__init__()
        (own, version) = own_group("cpuset")
        try:
            self._make(own / f"tandem-test-{os.getpid()}-{time.monotonic_ns()}")
            if version == 1:
                (self.folders[0] / "cpuset.mems").write_text((own / "cpuset.mems").read_text())
            self.set(cores)
        except OSError as error:
            self.remove()
            raise unittest.SkipTest(f"no control group with cores of its own can be made: {error}") from error

    def set(self, cores):
        (self.folders[0] / "cpuset.cpus").write_text(",".join(map(str, sorted(cores))))
