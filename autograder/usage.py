"""What a submission's processes use together: the kernel's limits hold for each one alone."""

from __future__ import annotations

import contextlib
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
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid)
        family = [top, *top.children(recursive=True)]
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


def _own_share(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
