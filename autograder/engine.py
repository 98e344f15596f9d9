"""Runs gradings on many processes and many machines with Dask: each submission has one answer.

Submissions travel as bytes and answers as text, so that no folder needs to be shared. What is on
its way at any moment is bounded, so that a class of any size fits. A process that dies is replaced
and its submission tried elsewhere; one that kills every process is told, and stops nobody else's.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from . import identity
from .course import CourseError

Key = TypeVar("Key")
Parcel = dict[str, Any]

AHEAD = 2  # submissions on their way for each grading process: none waits for the next
BYTES_AHEAD = 64 << 20  # of all submissions on their way; one larger travels alone
DEATHS = 1  # processes that a submission may take along before it is tried alone
PATIENCE = 30.0  # seconds for a scheduler to answer, and for a first worker to join it
LOOK = 5.0  # seconds between two counts of the workers
START = "PYTHONPATH=. dask worker {address} --nthreads 1 --nworkers auto"


class Crowd:
    """The grading processes: our own on this machine, or those of a scheduler's address.

    `versions` is what they compute with.
    """

    def __init__(self, jobs: int, scheduler: str | None = None) -> None:
        self.versions = identity.versions()
        self._jobs, self._address = jobs, scheduler
        self._client: Any = None
        self._cluster: Any = None
        self._counted = 0.0
        self._over = threading.Event()

    def __enter__(self) -> Crowd:
        if self._address is not None:
            self._join()
            threading.Thread(target=self._watch, name="workers", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self._over.set()
        with contextlib.suppress(Exception):
            if self._client is not None:
                self._client.close(timeout=2)
        if self._cluster is not None:
            if kind is not None:  # what is running is of no use any more
                for worker in self._cluster.workers.values():
                    with contextlib.suppress(TypeError, OSError):
                        os.kill(worker.pid, signal.SIGKILL)
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=10)

    def run(
        self, parcels: Iterator[tuple[Key, Parcel]], work: Callable[[Parcel], str]
    ) -> Iterator[tuple[Key, str | None]]:
        """(key, text of `work(parcel)`) as they finish; None where a process died each time.

        `parcels` is asked for the next one only when there is a place for it.
        """
        first = next(parcels, None)
        if first is None:
            return
        if self._client is None:
            self._start()
        suspects: list[tuple[Key, Parcel]] = []
        yield from self._flow(_chain(first, parcels), work, suspects)
        for suspect in suspects:  # one after the other, so that none suffers for another
            hopeless: list[tuple[Key, Parcel]] = []
            yield from self._flow(iter([suspect]), work, hopeless)
            yield from ((key, None) for key, _ in hopeless)

    def _flow(
        self,
        parcels: Iterator[tuple[Key, Parcel]],
        work: Callable[[Parcel], str],
        killers: list[tuple[Key, Parcel]],
    ) -> Iterator[tuple[Key, str | None]]:
        from distributed import KilledWorker, as_completed

        done = as_completed(loop=self._client.loop)
        running: dict[Any, tuple[Key, Parcel]] = {}
        underway = 0
        while True:
            while len(running) < self._places() and (not running or underway < BYTES_AHEAD):
                item = next(parcels, None)
                if item is None:
                    break
                name = f"grade-{uuid.uuid4().hex}"
                future = self._client.submit(work, item[1], key=name, pure=False)
                running[future] = item
                underway += _size(item[1])
                done.add(future)
            if not running:
                return
            future = next(done)
            key, parcel = running.pop(future)
            underway -= _size(parcel)
            try:
                answer = future.result()
            except KilledWorker:
                killers.append((key, parcel))
                continue
            except Exception as error:
                raise CourseError(
                    f"the grading processes failed ({type(error).__name__}: {error}): what was "
                    "finished is kept; run the same command again"
                ) from error
            finally:
                future.release()
            yield key, answer

    def _places(self) -> int:
        """How many submissions may be on their way."""
        if self._address is not None and time.monotonic() > self._counted + LOOK:
            self._jobs = sum(self._client.nthreads().values()) or self._jobs
            self._counted = time.monotonic()
        return AHEAD * self._jobs

    def _start(self) -> None:
        """Processes of our own, that only we can talk to, and that end with this one."""
        import dask
        from distributed import Client, LocalCluster

        dask.config.set(_LOCAL)
        resource_tracker.ensure_running()  # it would unblock the signal below
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Ctrl-C is for us alone
        try:
            self._cluster = LocalCluster(
                n_workers=self._jobs,
                threads_per_worker=1,
                processes=True,
                security=True,
                host="127.0.0.1",
                dashboard_address=None,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                memory_limit=0,  # the sandbox limits what a submission may use
                silence_logs=logging.CRITICAL,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._client = Client(self._cluster)

    def _join(self) -> None:
        """The workers of somebody's scheduler, if they have this course."""
        from distributed import Client

        address = str(self._address)
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            self._client = Client(address, timeout=PATIENCE)
        except Exception as error:  # of the network, of TLS, of an address that is none
            raise CourseError(
                f"no scheduler answers at {address} ({type(error).__name__}: {error}): start one "
                "with `dask scheduler`; tls:// wants the certificates of Dask's configuration"
            ) from None
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except Exception:
            raise CourseError(
                f"no worker has joined {address}: in the course's folder, run "
                + START.format(address=address)
            ) from None
        self.versions = self._agreed(address)

    def _watch(self) -> None:
        """Say it when all workers have left: grading then waits, and nothing else would tell."""
        alone = False
        while not self._over.wait(LOOK):
            with contextlib.suppress(Exception):  # of a connection that is lost or just closed
                was, alone = alone, not self._client.nthreads()
                if alone and not was:
                    print(
                        f"\nno worker is left at {self._address}: grading waits for one. In the "
                        f"course's folder, run {START.format(address=self._address)}\n"
                        "or press Ctrl-C: what was finished is kept",
                        file=sys.stderr,
                    )

    def _agreed(self, address: str) -> dict[str, Any]:
        """The versions of all workers; raises CourseError where one grades differently."""
        mine = identity.whole()
        try:
            found = self._client.run(identity.whole)
        except Exception as error:
            raise CourseError(
                f"the workers of {address} cannot find this course ({error}): in a folder with the "
                "same course, run " + START.format(address=address)
            ) from None
        versions = next(iter(found.values()))["versions"]
        for worker, theirs in found.items():
            identity.agree(worker, {"course": mine["course"], "versions": versions}, theirs)
        return dict(versions)


_LOCAL = {
    "distributed.scheduler.allowed-failures": DEATHS,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _size(parcel: Parcel) -> int:
    return len(parcel.get("content", b""))
