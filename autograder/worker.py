"""The sandboxed process: runs a student's cells, then answers requests until its input ends.

It is started with nothing but this file and the three that it imports, under another package name,
so that no checker, no reference and no grade can be found here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import json
import os
import shutil
import signal
import sys
import time
import types
from typing import Any

from .replies import StudentError
from .runner import NamespaceRunner, describe
from .wire import pack, read_frame, unpack

WAIT = 3  # a limit of processor time, in time on the clock


class TimeUp(BaseException):
    """Raised into a student's code that has run for too long."""


def main() -> None:
    """A process of its own: requests come to its input, replies leave by its output."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    confine(json.loads(sys.argv[1]))
    bring_fonts()
    serve(requests, replies)


def serve(requests_from: int, replies_to: int, shell: Any = None) -> None:
    """Run the cells of the first message, then answer requests until there are no more."""
    replies = os.fdopen(replies_to, "wb", buffering=0)
    requests = os.fdopen(requests_from, "rb")
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    frame = read_frame(requests)
    if frame is None:
        return
    task = unpack(frame)
    _hand_over_the_course_name()
    shell = shell or make_shell()
    for descriptor in (1, 2):  # until here a fault is the machinery's, and may be heard
        os.dup2(quiet, descriptor)
    os.close(quiet)

    myself = os.getpid()

    def send(message: Any) -> None:
        replies.write(pack(message))

    for number, source in enumerate(json.loads(task["cells"])):
        if number in task["skip"]:
            continue
        send({"cell": number})
        failure = _run_cell(shell, source, task["cell_seconds"])
        _end_if_not(myself)
        if failure is not None:
            send({"failed": number, "error": failure})
    send({"ready": sorted(n for n in task["names"] if n in shell.user_ns)})

    runner = NamespaceRunner(shell.user_ns)
    while (frame := read_frame(requests)) is not None:
        reply = _answer(runner, unpack(frame), task["call_seconds"])
        _end_if_not(myself)
        try:
            packed = pack(reply)
        except (ValueError, MemoryError) as problem:
            packed = pack({"error": ["ValueError", "Exception"], "text": f"result {problem}"})
        replies.write(packed)


def _end_if_not(myself: int) -> None:
    """End a copy of this process that a student's code forked and left running on."""
    if os.getpid() != myself:
        os._exit(0)


def _run_cell(shell: Any, source: str, seconds: float) -> list[str] | None:
    """Run one cell as a notebook would; a failing cell is told, and does not stop the next."""
    try:
        with _alarm(seconds):
            result = shell.run_cell(source, store_history=False)
    except TimeUp:
        return ["TimeUp", ""]
    except BaseException as error:
        return [type(error).__name__, _text(error)]
    raised = result.error_before_exec or result.error_in_exec
    return None if raised is None else [type(raised).__name__, _text(raised)]


def _answer(runner: NamespaceRunner, request: dict[str, Any], seconds: float) -> dict[str, Any]:
    try:
        with _alarm(seconds):
            return {"value": runner.run(request)}
    except StudentError as error:
        return _told(error)
    except TimeUp:
        return {"error": ["TimeUp"], "text": ""}
    except BaseException as error:
        return _told(describe(error))


def _told(error: StudentError) -> dict[str, Any]:
    place = {"function": error.function, "line": error.line}
    return {"error": list(error.types), "text": error.message, **place}


def confine(limits: dict[str, Any]) -> None:
    """Kernel limits for this process and all its children; then, as root, somebody else."""
    try:
        import resource
    except ImportError:  # Windows: there is no sandbox there either
        return
    wanted = {
        "RLIMIT_DATA": limits["memory_bytes"],
        "RLIMIT_CPU": limits["cpu_seconds"],
        "RLIMIT_FSIZE": limits["file_bytes"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_CORE": 0,
    }
    if limits.get("uid") is not None:
        os.setgroups([])
        os.setresgid(limits["uid"], limits["uid"], limits["uid"])
        os.setresuid(limits["uid"], limits["uid"], limits["uid"])
    if limits.get("walls"):
        wanted["RLIMIT_NPROC"] = limits["processes"]
        os.nice(5)  # the grader itself goes first
    for name, value in wanted.items():
        number = getattr(resource, name, None)
        hard = value + 1 if name == "RLIMIT_CPU" else value  # or else no signal tells which it was
        if number is not None:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(number, (value, hard))


@contextlib.contextmanager
def _alarm(seconds: float) -> Any:
    """Raise TimeUp into the block after `seconds` of processor time, or WAIT times that in all.

    It rings again every second, for code that swallows it. Processor time makes the limit mean the
    same on a busy machine.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    began, queued = time.monotonic(), _queued()

    def spent(*_: Any) -> None:
        raise TimeUp

    def waited(*_: Any) -> None:
        idle = time.monotonic() - began - (_queued() - queued)
        if idle >= seconds * WAIT:
            raise TimeUp

    signal.signal(signal.SIGPROF, spent)
    signal.signal(signal.SIGALRM, waited)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    signal.setitimer(signal.ITIMER_REAL, seconds * WAIT, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _queued() -> float:
    """Seconds that this process stood ready and was given no processor: others' fault, not its."""
    try:
        with open("/proc/self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def make_shell() -> Any:
    """IPython without a kernel: magics, `!` lines, `display` and top-level await all work."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    shell.user_ns["__name__"] = "__main__"
    sys.path.insert(0, "")  # as in a notebook: what a cell writes, another may import
    magic = shell.run_line_magic

    def run_line_magic(name: str, line: str, _stack_depth: int = 1) -> Any:
        """A magic that only works where the student sat takes nothing else of its cell along."""
        with contextlib.suppress(Exception):
            return magic(name, line, _stack_depth + 1)

    shell.run_line_magic = run_line_magic  # type: ignore[assignment, method-assign]
    # `%matplotlib inline` asks for a window, and there is none.
    shell.enable_gui = lambda gui=None: None  # type: ignore[method-assign]
    return shell


def let_backends_be_asked_for() -> None:
    """`matplotlib.use("TkAgg")` is no error before pyplot is imported, and here it was already."""
    import matplotlib

    matplotlib.use = functools.partial(matplotlib.use, force=False)


def bring_fonts() -> None:
    """Put the ready list of fonts where matplotlib looks for it."""
    source, target = "/worker/matplotlib", os.environ.get("MPLCONFIGDIR", "")
    if os.path.isdir(source) and target:
        with contextlib.suppress(OSError):
            shutil.copytree(source, target, dirs_exist_ok=True)


def _hand_over_the_course_name() -> None:
    """`from autograder import check` works in a cell, and checks nothing: the grader does."""
    package = types.ModuleType("autograder")
    package.__spec__ = importlib.machinery.ModuleSpec("autograder", None)
    package.check = lambda *_, **__: None  # type: ignore[attr-defined]
    sys.modules["autograder"] = package


def _text(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        python = ".".join(map(str, sys.version_info[:2]))
        return f"{error.msg} (line {error.lineno}, read by Python {python})"
    try:
        return str(error)[:500]
    except BaseException:
        return ""
