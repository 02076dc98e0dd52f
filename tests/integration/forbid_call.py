"""forbid_call.py CALL[,CALL…] COMMAND ARGUMENT…: becomes the command, to which the kernel refuses these system calls, as
container policies may."""
import ctypes
import errno
import os
import struct
import sys

CALLS = {
    "kill": {"x86_64": 62, "aarch64": 129},  # To signal a process by its number.
    "pidfd_open": {"x86_64": 434, "aarch64": 434},  # To have a descriptor of one.
    "pidfd_send_signal": {"x86_64": 424, "aarch64": 424},  # To signal it through that.
    "sched_setaffinity": {"x86_64": 203, "aarch64": 122},  # To keep to some cores.
    "sched_setscheduler": {"x86_64": 144, "aarch64": 119},  # To choose a class for the CPU.
}
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def main():
    numbers = [CALLS[call][os.uname().machine] for call in sys.argv[1].split(",")]
    # One that is equal goes on behind all others, and behind the rule that allows.
    equal = [(IF_EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    rules = [(LOAD, 0, 0, 0), *equal, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    program = Program(len(rules), b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program)):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[2], sys.argv[2:])


main()
