"""A student's process: what it may do, how it may end, and that nothing of it stays behind."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import pytest

from autograder import sandbox, usage, walls, warm
from autograder.answers import Answers
from autograder.notebooks import cells_in
from autograder.replies import StudentError
from autograder.sandbox import Limits
from autograder.session import Gone, Session

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}"),
]
LIMITS = Limits(
    cell_seconds=2, call_seconds=1, wall_seconds=40, memory_bytes=600 << 20, scratch_bytes=64 << 20
)


@contextmanager
def submitted(*cells: str, names: str = "f g h", limits: Limits = LIMITS) -> Iterator[Session]:
    with Session(list(cells), names.split(), limits) as session:
        yield session


def ask(session: Session, name: str, *inputs: object) -> object:
    session.begin(name)
    return getattr(Answers(session), name)(*inputs)


def test_functions_of_a_notebook_answer_with_arrays() -> None:
    with submitted("import numpy as np", "def f(x):\n    return 2 * np.asarray(x)") as session:
        assert list(ask(session, "f", np.arange(3))) == [0, 2, 4]
        assert session.status == "graded" and session.defined == ["f"]


def test_noise_of_every_kind_costs_nothing() -> None:
    cells = [
        "import sys, warnings\nprint('x' * 10**6)\nprint('e', file=sys.stderr)",
        "1 / 0",
        "def broken(:",
        "%timeit -n1 -r1 1",
        "%matplotlib inline",
        "!ls /nowhere; echo hi",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "from autograder import check\ndef f(x):\n    return helper(x)\ncheck(f)",
        "await __import__('asyncio').sleep(0)",
        "input('name? ')",
        "import sys\nsys.exit(1)",
        "display(1)\nexit()",
        "def helper(x):\n    warnings.warn('careful')\n    print('noise')\n    return x + 1",
    ]
    with submitted(*cells) as session:
        assert ask(session, "f", 4) == 5
        assert session.status == "graded"
        assert session.failed_cells[1].startswith("ZeroDivisionError")


HONEST = {
    "writes to the streams itself": "import sys\ndef f(x):\n    sys.stdout.write('a'); "
    "sys.stderr.write('b'); sys.stdout.isatty(); sys.stdout.flush()\n    return x",
    "a magic that works elsewhere": "%conda install numpy\n%matplotlib widget\n"
    "def f(x):\n    return x",
    "a byte order mark": "\ufeffdef f(x):\n    return x",
    "a very long cell": f"picture = '{'A' * 300_000}'\ndef f(x):\n    return x",
    "a module written by a cell": "open('mine.py', 'w').write('k = 1')\nfrom mine import k\n"
    "def f(x):\n    return x * k",
    "big-endian numbers": "import numpy as np\ndef f(x):\n    return np.asarray(x).astype('>f8')",
    "a progress bar": "from tqdm import tqdm\ndef f(x):\n"
    "    for _ in tqdm(range(3)): pass\n    return x",
    "display in a function": "def f(x):\n    display(x)\n    return x",
    "a compiled function": "import torch\n@torch.compile\ndef g(x):\n    return x\n"
    "def f(x):\n    return g(torch.tensor(x)).numpy()",
}


@pytest.mark.parametrize("what", HONEST)
def test_an_honest_oddity_costs_nothing(what: str) -> None:
    notebook = {"cells": [{"cell_type": "code", "source": HONEST[what]}]}
    limits = replace(LIMITS, cell_seconds=10, call_seconds=5, memory_bytes=2 << 30)
    with submitted(*cells_in(notebook), limits=limits) as session:
        assert list(ask(session, "f", np.array([1.5, -2.0]))) == [1.5, -2.0]
        assert session.status == "graded"


def test_a_name_that_a_later_cell_gave_to_something_else_is_told_as_that() -> None:
    told = "a later cell gave the name `f` to something else, of type list"
    with (
        submitted("def f(x):\n    return [x]", "f = f(1)") as session,
        pytest.raises(StudentError, match=told),
    ):
        ask(session, "f", 1)


def test_a_cell_that_should_define_an_answer_is_told_beside_answers_that_are_not_written() -> None:
    cells = [
        "def f(x):\n    raise NotImplementedError\nf(1)",
        "print(f_of_1)",
        "@njit\ndef g(x):\n    pass",
    ]
    with submitted(*cells) as session:
        with pytest.raises(StudentError, match="the name 'g' is not defined, and not every cell"):
            ask(session, "g", 1)
        assert session.notes() == ["Code cell 3, `@njit`: NameError: name 'njit' is not defined"]


def test_what_a_cell_raised_is_told_in_one_line_with_the_python_that_read_it() -> None:
    with submitted("raise ValueError('a\\nStatus: graded by hand')", "x = (") as session:
        session.load()
        first, second = session.notes()
    assert first.endswith("ValueError: a Status: graded by hand")
    assert second.endswith(f"(line 1, read by Python {sys.version_info[0]}.{sys.version_info[1]})")


def test_an_endless_cell_is_stopped_and_the_next_one_runs() -> None:
    started = time.monotonic()
    with submitted("while True:\n    pass", "def f(x):\n    return x") as session:
        assert ask(session, "f", 1) == 1
        assert session.status == "timeout"
    assert time.monotonic() - started < 12


def test_a_cell_that_swallows_the_alarm_is_left_out() -> None:
    stubborn = (
        "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except BaseException: pass"
    )
    with submitted("def f(x):\n    return x", stubborn, "def g(x):\n    return 2") as session:
        assert ask(session, "g", 1) == 2 and ask(session, "f", 3) == 3
        assert session.status == "timeout" and 1 in session.failed_cells


def test_an_endless_call_costs_its_own_exercise_only() -> None:
    with submitted("def f(x):\n    while True: pass\ndef g(x):\n    return x") as session:
        for _ in range(5):
            started = time.monotonic()
            with pytest.raises(Gone):
                ask(session, "f", 1)
        assert time.monotonic() - started < 0.1  # the fifth is not even tried
        assert ask(session, "g", 7) == 7
        assert session.status == "timeout"


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.abort()"])
def test_a_crash_in_a_cell_or_a_call_is_told_and_the_rest_is_graded(ending: str) -> None:
    cells = [f"import os\n{ending}", f"import os\ndef f(x):\n    {ending}\ndef g(x):\n    return x"]
    with submitted(*cells) as session:
        with pytest.raises(Gone, match="ended by itself"):
            ask(session, "f", 1)
        assert ask(session, "g", 7) == 7
        assert session.status == "crashed" and 0 in session.failed_cells


def test_memory_is_bounded_in_one_process_and_over_all() -> None:
    bomb = "x = []\nwhile True:\n    x.append(bytearray(8 << 20))"
    many = (
        "import os, time\nfor _ in range(12):\n    if os.fork() == 0:\n"
        "        x = os.urandom(100 << 20); time.sleep(60); os._exit(0)\ntime.sleep(20)"
    )
    patient = replace(LIMITS, cell_seconds=12, wall_seconds=90)  # a busy machine fills it slowly
    for cell in (bomb, many):
        with submitted(cell, "def f(x):\n    return x", limits=patient) as session:
            assert ask(session, "f", 1) == 1
            assert session.status == "out of memory", cell


def test_many_busy_processes_share_one_budget_of_processor_time() -> None:
    busy = "import os\nfor _ in range(8):\n    if os.fork() == 0:\n        while True: pass\n"
    limits = replace(LIMITS, cpu_seconds=4, cell_seconds=9)
    cell = busy + "import time\ntime.sleep(60)"
    with submitted(cell, "def f(x):\n    return x", limits=limits) as session:
        assert ask(session, "f", 1) == 1
        assert session.status == "timeout" and "processor time" in session.failed_cells[0]


def test_a_flood_of_messages_does_not_keep_the_grader_busy_for_ever() -> None:
    flood = """
import os, json, struct
header = json.dumps({"dict": [["cell", 0]]}).encode()
frame = struct.pack(">II", len(header), 0) + header
while True:
    for fd in range(3, 9):
        try:
            os.write(fd, frame)
        except BaseException:
            pass
"""
    limits = replace(LIMITS, wall_seconds=8)
    started = time.monotonic()
    with submitted(flood, "def f(x):\n    return x", limits=limits) as session:
        with suppress(Gone):
            ask(session, "f", 1)
        assert session.status in ("timeout", "crashed")
    assert time.monotonic() - started < 20


def test_scratch_and_shared_memory_are_bounded() -> None:
    fill = """
def f(folder):
    written = 0
    try:
        for i in range(100):
            with open(f"{folder}/{i}", "wb") as out:
                out.write(b"x" * (10 << 20))
            written += 1
    except OSError:
        pass
    return written
"""
    with submitted(fill) as session:
        assert 0 < ask(session, "f", "/tmp") <= 7
        assert 0 < ask(session, "f", "/dev/shm") <= 7
        assert ask(session, "f", "/dev") == 0 and ask(session, "f", "/worker") == 0


def test_nothing_of_the_course_or_the_machine_can_be_seen(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    root = Path(__file__).resolve().parent.parent
    look = """
import os, glob
def f(paths):
    return [p for p in paths if os.path.exists(p)]
def g(x):
    return sorted(os.environ)
def h(x):
    return [n for n in os.listdir("/proc") if n.isdigit()]
"""
    with submitted(look) as session:
        paths = [str(root / p) for p in ("solutions", "autograder", "_toc.yml", "tests")]
        assert ask(session, "f", [*paths, str(tmp_path), "/etc/passwd", "/etc/shadow"]) == []
        assert not {"SHELL", "PYTHONPATH", "VIRTUAL_ENV"} & set(ask(session, "g", 0))
        assert len(ask(session, "h", 0)) <= 3  # its own processes alone


def test_a_submission_inherits_its_two_pipes_and_nothing_else() -> None:
    look = """
import os
def f(x):
    found = {n: os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
             if os.path.lexists(f"/proc/self/fd/{n}")}
    return [to.split(":")[0] for n, to in sorted(found.items(), key=lambda p: int(p[0]))]
def g(x):
    return [os.getuid(), os.getpid()], open("/proc/self/status").read()
"""
    with submitted(look) as session:
        assert ask(session, "f", 0) == ["/dev/null"] * 3 + ["pipe"] * 2
        (uid, pid), status = ask(session, "g", 0)
        assert uid != 0 and pid == 2
        rights = [line.split()[1] for line in status.splitlines() if line.startswith("Cap")]
        assert {int(r, 16) for r in rights[:3]} == {0}
        assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status


REFUSED = {
    "a user namespace": "libc.unshare(0x10000000)",
    "memory that belongs to no process": "libc.memfd_create(b'x', 0)",
    "shared memory without a file": "libc.mmap(0, 4096, 3, 0x21, -1, 0)",
    "larger buffers of a socket": "libc.setsockopt(3, 1, 7, ctypes.byref(ctypes.c_int(9)), 4)",
    "a newer call for mounts": "libc.syscall(467, -100, b'/', 0, 0, 0)",
    "System V shared memory": "libc.shmget(0, 1 << 20, 0o1600)",
    "a vsock socket": "libc.socket(40, 1, 0)",
    "a netlink socket": "libc.socket(16, 3, 0)",
    "tracing": "libc.ptrace(16, 1, 0, 0)",
    "mounting": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "an io_uring": "libc.syscall(425, 8, ctypes.create_string_buffer(120))",
    "a keyring": "libc.syscall(250, 0, -3, 1)",
    "a namespace by clone": "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_system_call_that_no_answer_needs_is_refused(what: str) -> None:
    code = f"import ctypes\nlibc = ctypes.CDLL(None)\ndef f(x):\n    return {REFUSED[what]}"
    with submitted(code) as session:
        assert ask(session, "f", 0) == -1


def test_a_sandbox_is_kept_for_the_next_submission_which_sees_nothing_of_the_last() -> None:
    leave = """
import os, socket, subprocess
open("/tmp/mark", "w").write("x"); open("/dev/shm/mark", "w").write("x")
subprocess.Popen(["sleep", "100"], start_new_session=True)
import numpy; numpy.pi = 3
def f(x):
    return os.getuid()
"""
    look = """
import os, numpy
def f(x):
    left = [n for n in os.listdir("/tmp") if n != ".ipython"] + os.listdir("/dev/shm")
    return left, numpy.pi, os.getuid()
def g(x):
    return numpy.random.random(3)
def h(x):
    return [p for p in os.listdir("/proc") if p.isdigit()]
"""
    drawn = []
    with submitted(leave) as session:
        before = ask(session, "f", 0)
        kept = session._process._home.pid  # type: ignore[union-attr]
    for _ in range(2):
        with submitted(look) as session:
            assert ask(session, "h", 0) == ["1", "2"]
            assert session._process._home.pid == kept  # type: ignore[union-attr]
            left, pi, uid = ask(session, "f", 0)
            assert (left, pi) == ([], np.pi) and (uid != before or os.geteuid() != 0)
            drawn.append(list(ask(session, "g", 0)))
    assert drawn[0] != drawn[1]


def test_a_python_that_lies_below_the_scratch_folder_is_seen_and_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = sandbox.pythons()
    with TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / "lib").mkdir()
        (Path(folder) / "lib" / "module.py").write_text("x = 1")
        (Path(folder) / "pyvenv.cfg").write_text("y")
        (Path(folder) / "secret").write_text("z")
        parts = [f"{folder}/lib", f"{folder}/pyvenv.cfg", f"{folder}/../{Path(folder).name}/lib"]
        monkeypatch.setattr(sandbox, "pythons", lambda: [*whole, *parts])
        warm.close_all()
        look = f"""
import os
def f(x):
    return sorted(os.listdir("{folder}")), open("{folder}/lib/module.py").read()
def g(x):
    with open("{folder}/lib/module.py", "w") as file:
        file.write("x = 2")
"""
        with submitted(look) as session:
            assert ask(session, "f", 0) == (["lib", "pyvenv.cfg"], "x = 1")
            with pytest.raises(StudentError, match="Read-only"):
                ask(session, "g", 0)
    warm.close_all()


def test_each_worker_of_a_kept_sandbox_is_watched() -> None:
    for _ in range(6):
        with submitted("def f(x):\n    return 1") as session:
            assert ask(session, "f", 0) == 1
            worker = psutil.Process(session._process.pid)  # type: ignore[union-attr]
            assert worker.status() != psutil.STATUS_ZOMBIE
            assert usage.of_tree(worker.pid, 1 << 40).memory > 10 << 20


def test_processes_that_hide_from_the_watch_are_seen() -> None:
    headless = """
import ctypes, os, threading, time
def hold():
    block = os.urandom(150 << 20)
    time.sleep(60)
for _ in range(5):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).syscall(60, 0)  # the first thread ends, the process lives
time.sleep(60)
"""
    unfetched = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
until = time.monotonic() + 60
for _ in range(4):
    if os.fork() == 0:
        while time.monotonic() < until:
            if os.fork() == 0:
                end = time.monotonic() + 0.4
                while time.monotonic() < end:
                    pass
                os._exit(0)
            time.sleep(0.4)
        os._exit(0)
time.sleep(60)
"""
    limits = replace(LIMITS, cell_seconds=15, wall_seconds=60)
    for cell, status, seconds in ((headless, "out of memory", 60), (unfetched, "timeout", 6)):
        limits = replace(limits, cpu_seconds=seconds)
        with submitted(cell, "def f(x):\n    return x", limits=limits) as session:
            assert ask(session, "f", 1) == 1
            assert session.status == status and "more than" in session.failed_cells[0]


FRIENDLY = {
    "a backend for windows": "import matplotlib\nmatplotlib.use('TkAgg')\ndef f(x):\n    return x",
    "the user's name": "import getpass\nwho = getpass.getuser()\ndef f(x):\n    return x",
    "a fork that runs on": "import os\npid = os.fork()\nprint(pid)\ndef f(x):\n    return x",
    "a fork in an answer": "import os\ndef f(x):\n    os.fork()\n    return x",
    "a server of its own": "import socket\ndef f(x):\n"
    "    with socket.create_server(('127.0.0.1', 0)) as server:\n"
    "        socket.create_connection(server.getsockname()).close()\n    return x",
    "a pool of processes": "from multiprocessing import Pool\ndef double(x):\n    return 2 * x\n"
    "def f(x):\n    with Pool(2) as pool:\n        return pool.map(double, [x])[0] / 2",
    "a gradient": "import torch\ndef f(x):\n    t = torch.tensor(float(x), requires_grad=True)\n"
    "    (t * t).backward()\n    return float(t.grad) / 2",
}


@pytest.mark.parametrize("what", FRIENDLY)
def test_what_works_in_a_fresh_process_works_in_a_forked_one(what: str) -> None:
    limits = replace(LIMITS, cell_seconds=10, call_seconds=5, memory_bytes=2 << 30)
    with Session([FRIENDLY[what]], ["f"], limits, preload=True) as session:
        assert ask(session, "f", 3) == 3 and ask(session, "f", 4) == 4
        assert session.status == "graded" and not session.failed_cells


def test_a_sandbox_that_dies_while_a_cell_runs_stops_no_batch() -> None:
    with submitted("import time\ntime.sleep(1.5)", "def f(x):\n    return x") as session:
        session._start()
        home = psutil.Process(session._process._home.pid)  # type: ignore[union-attr]
        threading.Timer(0.7, home.kill).start()
        session._start = lambda start=session._start: setattr(session, "_start", start)  # type: ignore[method-assign]
        session.load()
        assert ask(session, "f", 3) == 3 and session.status == "crashed"


def test_a_sandbox_that_died_is_replaced() -> None:
    code = "def f(x):\n    return 1"
    with submitted(code) as session:
        assert ask(session, "f", 0) == 1
        psutil.Process(session._process._home.pid).kill()  # type: ignore[union-attr]
        try:
            assert ask(session, "f", 0) == 1
        except Gone:  # the worker was gone before it answered
            assert session.status == "crashed"
    with submitted(code) as session:
        assert ask(session, "f", 0) == 1 and session.status == "graded"


def test_no_process_of_a_submission_outlives_it() -> None:
    mark = f"sleeper-{os.getpid()}"
    shell = f"['/bin/bash', '-c', 'exec -a {mark} sleep 100']"
    daemon = f"import subprocess\nsubprocess.Popen({shell}, start_new_session=True)"

    def alive() -> bool:
        every = psutil.process_iter(["cmdline"])
        return any(mark in " ".join(p.info["cmdline"] or []) for p in every)

    with submitted(daemon, "def f(x):\n    return x") as session:
        assert ask(session, "f", 1) == 1
        assert alive()
    time.sleep(0.3)
    assert not alive()


def test_forged_and_broken_replies_are_that_exercises_loss() -> None:
    forge = """
import os, struct
def f(x):
    for fd in range(3, 12):
        try:
            os.write(fd, struct.pack(">II", 4000000000, 1) + b"junk" * 100)
        except OSError:
            pass
    return x
def g(x):
    return x
"""
    with submitted(forge) as session:
        with pytest.raises(StudentError):
            ask(session, "f", 1)
            ask(session, "f", 1)
        assert ask(session, "g", 7) == 7


TO_ALL = """
def to_all(frame):
    for descriptor in range(3, 32):
        try:
            os.write(descriptor, frame)
        except OSError:
            pass
"""
FORGED = [
    '{"dict": [["value", 1], ["error", 5]]}',
    '{"dict": [["error", {"list": ["E"]}], ["text", 7]]}',
    '{"dict": [["error", {"list": ["E"]}], ["text", ""], ["line", Infinity]]}',
    '{"list": []}',
    "5",
    '{"dict": [["cell", Infinity]]}',
]


@pytest.mark.parametrize("header", FORGED)
def test_a_forged_reply_is_that_exercises_loss_and_no_fault_of_the_grader(header: str) -> None:
    forge = f"""
import os, struct
{TO_ALL}
def f(x):
    header = {header!r}.encode()
    to_all(struct.pack(">II", len(header), 0) + header)
    os._exit(0)
def g(x):
    return x
"""
    with submitted(forge) as session:
        with pytest.raises(StudentError):
            ask(session, "f", 1)
        assert ask(session, "g", 7) == 7


@pytest.mark.parametrize(
    "message", ['["failed", 7], ["error", {"list": ["E", ""]}]', '["failed", -9]']
)
def test_a_forged_message_about_cells_is_no_fault_of_the_grader(message: str) -> None:
    header = f'{{"dict": [{message}]}}'
    forge = f"import os, struct\nh = {header!r}.encode()\n"
    forge += TO_ALL + "to_all(struct.pack('>II', len(h), 0) + h)"
    with submitted(forge, "def f(x):\n    return x") as session:
        assert ask(session, "f", 1) == 1
        assert session.status == "crashed" and session.notes()


def test_the_graders_environment_is_not_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_SECRET", "hunter2")
    look = """
def f(x):
    found = []
    for number in (1, 2, "self"):
        try:
            found.append(open(f"/proc/{number}/environ").read())
        except OSError:
            pass
    return "".join(found)
"""
    with submitted(look) as session:
        assert "hunter2" not in ask(session, "f", 0)


def test_a_reply_that_is_too_large_is_an_error_of_the_students() -> None:
    with submitted("import numpy as np\ndef f(x):\n    return np.zeros(9 * 2**20)") as session:
        with pytest.raises(StudentError, match="larger than"):
            ask(session, "f", 1)
        assert session.status == "graded"


def test_inputs_are_copies_and_a_change_in_place_can_be_seen() -> None:
    with submitted("def f(x):\n    x += 1\n    return x") as session:
        session.begin("f")
        mine = np.zeros(2)
        _, (after,) = Answers(session).f.with_inputs(mine)
        assert mine.tolist() == [0, 0] and after.tolist() == [1, 1]


def test_the_walls_test_themselves() -> None:
    lines = list(walls.check())
    assert len(lines) == 8 and all(line.endswith(": ok") for line in lines)


def test_the_walls_stand_where_the_course_lies_in_a_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Python is then shown, and with it the folders above: that is no leak."""
    home = tmp_path / "home" / "ada"
    environment = home / "course" / ".venv" / "lib"
    environment.mkdir(parents=True)
    (home / "course" / "solutions").mkdir()
    (home / ".profile").write_text("")
    whole = sandbox.pythons()
    for module in (sandbox, walls):
        monkeypatch.setattr(module, "COURSE", home / "course")
        monkeypatch.setattr(module, "pythons", lambda: [*whole, str(environment)])
    monkeypatch.setattr(Path, "home", lambda: home)
    assert str(home / ".profile") in walls._hidden()
    assert len(list(walls.check())) == 8


def test_walls_that_leak_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sandbox._bwrap
    warm.close_all()  # the next one is made without that wall
    course = str(sandbox.COURSE)

    def with_the_course(start: str) -> list[str]:
        command = whole(start)
        at = command.index("--proc")
        return [*command[:at], "--ro-bind", course, course, *command[at:]]

    monkeypatch.setattr(sandbox, "_bwrap", with_the_course)
    with pytest.raises(sandbox.SandboxMissing, match="files"):
        list(walls.check())
    warm.close_all()
