"""The system calls that a submission may not make, as a filter for the kernel.

Namespaces of its own, other processes' memory, memory that belongs to no process (it would escape
every limit), sockets that leave a network namespace: honest code needs none of them. libseccomp
writes the program; the sandboxed process installs it before any student's code runs.
"""

from __future__ import annotations

import errno
import tempfile
from functools import cache

DENIED = """
    unshare setns mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount
    fspick mount_setattr ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise kcmp
    memfd_create memfd_secret shmget shmat shmctl shmdt msgget semget mq_open
    io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd
    add_key request_key keyctl kexec_load kexec_file_load init_module finit_module delete_module
    open_by_handle_at name_to_handle_at fanotify_init quotactl acct swapon swapoff reboot
    personality modify_ldt lookup_dcookie nfsservctl vm86 vm86old vmsplice
""".split()
NAMESPACES = (0x10000000, 0x20000, 0x08000000, 0x20000000, 0x40000000, 0x04000000, 0x02000000)
UNNAMED = (467,)  # open_tree_attr: newer than some libseccomp
SHARED_ANONYMOUS = 0x21  # memory of mmap that stays when a process gives it back
SOL_SOCKET, BUFFER_SIZES = 1, (7, 8, 32, 33)
LOCAL, INET, INET6 = 1, 2, 10  # the families that may be asked for; there is nobody to reach


class FilterMissing(Exception):
    """The filter cannot be made here; the message says what to install."""


@cache
def program() -> bytes:
    """The filter in the kernel's own form. Raises FilterMissing."""
    try:
        import pyseccomp as seccomp
    except ModuleNotFoundError:
        raise FilterMissing("pyseccomp is missing: pip install pyseccomp") from None
    except (ImportError, OSError, RuntimeError) as error:
        raise FilterMissing(
            f"libseccomp is missing ({error}): sudo apt-get install libseccomp2"
        ) from None
    refused = seccomp.ERRNO(errno.EPERM)
    made = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in (*DENIED, *UNNAMED):
        try:
            made.add_rule(refused, name)
        except (OSError, ValueError, RuntimeError):
            continue  # a call that this processor does not have
    shared = seccomp.Arg(3, seccomp.MASKED_EQ, SHARED_ANONYMOUS, SHARED_ANONYMOUS)
    made.add_rule(refused, "mmap", shared)
    for option in BUFFER_SIZES:
        level, name = seccomp.Arg(1, seccomp.EQ, SOL_SOCKET), seccomp.Arg(2, seccomp.EQ, option)
        made.add_rule(refused, "setsockopt", level, name)
    made.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")  # libraries then take clone
    for flag in NAMESPACES:
        made.add_rule(refused, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    for family in range(INET6):
        if family not in (LOCAL, INET):
            made.add_rule(refused, "socket", seccomp.Arg(0, seccomp.EQ, family))
    made.add_rule(refused, "socket", seccomp.Arg(0, seccomp.GT, INET6))
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        return file.read()
