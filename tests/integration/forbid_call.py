"""forbid_call.py CALL COMMAND ARGUMENT…: becomes the command, to which the kernel refuses that system call, as container
policies may."""
import ctypes
import errno
import os
import struct
import sys

CALLS = {
    "sched_setaffinity": {"x86_64": 203, "aarch64": 122},  # To keep to some cores.
    "sched_setscheduler": {"x86_64": 144, "aarch64": 119},  # To choose a class for the CPU.
}
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def main():
    number = CALLS[sys.argv[1]][os.uname().machine]
    rules = [(LOAD, 0, 0, 0), (IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    program = Program(len(rules), b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program)):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[2], sys.argv[2:])


main()
