"""What a submission's processes use together: the kernel's limits hold for each one alone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import psutil

LINUX = os.path.exists("/proc/self/statm")  # elsewhere nothing is watched
TICK = os.sysconf("SC_CLK_TCK") if LINUX else 1


@dataclass(frozen=True)
class Usage:
    """Memory in bytes, processor time in seconds, threads that want a processor now."""

    memory: int
    cpu: float
    running: int


def of_tree(pid: int, enough: int) -> Usage:
    """Usage of a process and all below it.

    Memory that forked processes share is counted once; telling that apart is slow, and done only
    when the sum of all is more than `enough`. A process counts for as long as one of its threads
    lives, also when its first has ended.
    """
    cpu, running = 0.0, 0
    threads = []  # one that lives, of each process
    for number in family_of(pid):
        found = []
        with contextlib.suppress(OSError):
            found = [
                f"/proc/{number}/task/{thread}" for thread in os.listdir(f"/proc/{number}/task")
            ]
        states = [stat[0] for thread in found if (stat := _stat(thread))]
        running += states.count("R")
        if whole := _stat(f"/proc/{number}"):
            cpu += sum(map(int, whole[11:15])) / TICK  # its own, and of children that it fetched
        threads += [thread for thread in found if _resident(thread)][:1]
    resident = sum(map(_resident, threads))
    if resident > enough:
        resident = sum(map(_own_share, threads))
    return Usage(resident, cpu, running)


def _stat(place: str) -> list[str]:
    """The fields behind the name, from the state on; none where there is no such thread."""
    with contextlib.suppress(OSError), open(f"{place}/stat") as file:
        return file.read().rpartition(")")[2].split()
    return []


def _resident(place: str) -> int:
    """Its pages, and the tables of them."""
    return sum(_sizes(f"{place}/status", ("VmRSS:", "VmPTE:")))


def _own_share(place: str) -> int:
    tables = _sizes(f"{place}/status", ("VmPTE:",))
    shared = _sizes(f"{place}/smaps_rollup", ("Pss:",))
    return sum(tables + shared) if shared else _resident(place)


def _sizes(file: str, names: tuple[str, ...]) -> list[int]:
    """Bytes on the lines that begin so."""
    with contextlib.suppress(OSError), open(file) as opened:
        return [int(line.split()[1]) << 10 for line in opened if line.startswith(names)]
    return []


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
