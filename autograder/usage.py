"""What a submission's processes use together: the kernel's limits hold for each one alone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Usage:
    """Memory in bytes, processor time in seconds."""

    memory: int
    cpu: float


def of_tree(pid: int, enough: int) -> Usage:
    """Usage of a process and all below it.

    Memory that forked processes share is counted once; telling that apart is slow, and done only
    when the sum of all is more than `enough`.
    """
    family = []
    for number in family_of(pid):
        with contextlib.suppress(psutil.Error):
            family.append(psutil.Process(number))
    resident, cpu = 0, 0.0
    for process in family:
        with contextlib.suppress(psutil.Error):
            resident += process.memory_info().rss
            times = process.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
    if resident > enough:
        resident = 0
        for process in family:
            with contextlib.suppress(psutil.Error):
                resident += _own_share(process)
    return Usage(resident, cpu)


def family_of(pid: int) -> list[int]:
    """A process and all below it, nearest first, as the kernel lists them.

    psutil would read every process of the machine for that, five times a second and submission.
    """
    if not os.path.exists("/proc/thread-self/children"):  # a kernel without them
        with contextlib.suppress(psutil.Error):
            return [pid, *(p.pid for p in psutil.Process(pid).children(recursive=True))]
        return [pid]
    found, todo = [], [pid]
    while todo:
        number = todo.pop(0)
        found.append(number)
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{number}/task"):
                with open(f"/proc/{number}/task/{thread}/children") as file:
                    todo += map(int, file.read().split())
    return found


def _own_share(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
