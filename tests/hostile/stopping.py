"""Attacks by ending, hanging and by taking away the clocks and rights that bound a submission."""

from __future__ import annotations

from .attack import HONEST, Attack, attack

IGNORE = """\
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
"""
CLOCKS = """\
import resource, signal
for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF, signal.ITIMER_VIRTUAL):
    signal.setitimer(timer, 0)
signal.alarm(0)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
signal.setitimer = signal.alarm = lambda *a: 0.0
signal.signal = lambda *a: None
"""
LIMITS = """\
import os, resource
for name in dir(resource):
    if name.startswith("RLIMIT"):
        number = getattr(resource, name)
        soft, hard = resource.getrlimit(number)
        try:
            resource.setrlimit(number, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (ValueError, OSError):
            continue
        if hard != resource.RLIM_INFINITY:
            breach(f"{name} raised")
before = os.getpriority(os.PRIO_PROCESS, 0)
for act in (
    lambda: os.setpriority(os.PRIO_PROCESS, 0, before - 5),
    lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]),
    lambda: os.kill(1, 9), lambda: os.kill(os.getppid(), 0) if os.getppid() == 0 else 1 / 0,
    lambda: open("/proc/self/oom_score_adj", "w").write("-1000") or open(
        "/proc/self/oom_score_adj").close(),
    lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)),
    lambda: open("/proc/sysrq-trigger", "w").write("h"),
    lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/x"),
):
    try:
        act()
    except (OSError, ZeroDivisionError):
        continue
    if os.getuid() == 0 or os.getpriority(os.PRIO_PROCESS, 0) < before:
        breach("rights or priority")
    if os.path.exists("/tmp/disk"):
        breach("a device")
"""
FACILITIES = """\
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
buffer = ctypes.create_string_buffer(256)
calls = {  # name: (x86-64, aarch64, arguments)
    "io_uring_setup": (425, 425, (4, buffer)),
    "userfaultfd": (323, 282, (1,)),
    "perf_event_open": (298, 241, (buffer, 0, -1, -1, 0)),
    "bpf": (321, 280, (0, buffer, 72)),
    "keyctl": (250, 219, (0, -3, 1)),
    "add_key": (248, 217, (b"user", b"hostile", b"x", 1, -3)),
    "memfd_create": (319, 279, (b"hostile", 0)),
    "memfd_secret": (447, 447, (0,)),
    "shmget": (29, 194, (0, 4096, 0o1777)),
    "msgget": (68, 186, (0, 0o1777)),
    "semget": (64, 190, (0, 1, 0o1777)),
    "pidfd_getfd": (438, 438, (0, 0, 0)),
    "kexec_load": (246, 104, (0, 0, 0, 0)),
    "fanotify_init": (300, 262, (0, 0)),
}
done = []
for name, (first, second, arguments) in calls.items():
    if libc.syscall(first if x86 else second, *arguments) >= 0:
        done.append(name)
if done:
    breach(done)
"""
NAMESPACES = """\
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
done = []
flags = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000,
         "ipc": 0x08000000, "uts": 0x04000000, "cgroup": 0x02000000}
for name, flag in flags.items():
    for both in (flag, flag | flags["user"]):
        child = os.fork()
        if child == 0:
            os._exit(0 if libc.unshare(both) == 0 else 1)
        if os.waitpid(child, 0)[1] == 0:
            done.append(name)
number = 56 if os.uname().machine == "x86_64" else 220
child = libc.syscall(number, flags["user"] | 17, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
if child > 0:
    os.waitpid(child, 0)
    done.append("clone")
os.makedirs("/tmp/inside", exist_ok=True)
if libc.mount(b"none", b"/tmp/inside", b"tmpfs", 0, None) == 0:
    done.append("mount")
if libc.mount(b"/", b"/tmp/inside", None, 4096, None) == 0:
    done.append("bind mount")
if libc.mount(None, b"/", None, 32 | 4096, None) == 0:
    done.append("remount")
if libc.umount2(b"/proc", 2) == 0:
    done.append("umount")
if libc.chroot(b"/tmp/inside") == 0:
    done.append("chroot")
for kind in ("user", "mnt", "net", "pid"):
    for pid in (1, os.getppid()):
        try:
            descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
        except OSError:
            continue
        if libc.setns(descriptor, 0) == 0:
            done.append(f"setns {kind}")
if done:
    breach(done)
"""
DAEMON = """\
import os, sys, time
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(256):
                try:
                    os.close(number)
                except OSError:
                    pass
            end = time.time() + 60
            while time.time() < end:
                time.sleep(0.5)
                for path in ("@CLASS@/gradebook.db", "@COURSE@/class/grades/grades.csv", "@MARK@"):
                    try:
                        open(path, "a").write("hostile")
                    except OSError:
                        pass
        os._exit(0)
import subprocess
subprocess.Popen(["/bin/sh", "-c", "trap '' HUP TERM INT; sleep 9371"], start_new_session=True)
"""
# Never outside the walls, where these would end the machine.
ALONE = """\
import os
if sum(name.isdigit() for name in os.listdir("/proc")) > 12:
    breach("processes of others")
"""
LOOP = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
SLEEP = "import time\nwhile True:\n    try:\n        time.sleep(99)\n    except BaseException: pass"
REPR = """\
class Odd(Exception):
    def __str__(self):
        while True:
            try:
                while True: pass
            except BaseException: pass
    __repr__ = __str__
def self_attention(*a, **k):
    raise Odd()
"""

ATTACKS: list[Attack] = [
    attack("exit-after-good-attempt", "answers right, then ends its process with success",
           "import os\nos._exit(0)", status="crashed"),
    attack("exit-at-exit", "ends its process at each exit, in each fork and each thread",
           "import atexit, os, threading\natexit.register(lambda: os._exit(0))\n"
           "os.register_at_fork(after_in_child=lambda: os._exit(0))\n"
           "def self_attention(*a, **k):\n    raise SystemExit(0)\n"
           "def permutation_gap(*a, **k):\n    raise KeyboardInterrupt\n"
           "def failed_requirements(*a, **k):\n    raise GeneratorExit",
           least=0.0, status="graded|crashed"),
    attack("exit-in-a-call", "ends its process while it is asked",
           "import os\ndef self_attention(*a, **k):\n    os._exit(0)", status="crashed"),
    attack("signals-itself", "kills, aborts and segfaults itself, cell after cell",
           "import os\nos.kill(os.getpid(), 9)", "import os\nos.abort()",
           "import ctypes\nctypes.string_at(0)", status="crashed"),
    attack("recursion", "lifts the limit of recursion and overflows the stack",
           "import sys\nsys.setrecursionlimit(10**9)\n"
           "def f(n):\n    return [f(n + 1)][0] + 1\nf(0)",
           "def self_attention(*a, **k):\n    return self_attention(*a)",
           status="graded|crashed|out of memory|timeout"),
    attack("endless-cell", "loops in a cell and swallows what is raised to stop it", LOOP,
           status="timeout"),
    attack("endless-call", "loops while it is asked",
           f"def self_attention(*a, **k):\n    {LOOP.replace(chr(10), chr(10) + '    ')}",
           status="timeout"),
    attack("ignored-signals", "ignores every signal and sleeps", IGNORE + SLEEP, status="timeout"),
    attack("stopped-clocks", "takes away timers and handlers, blocks all signals, and sleeps",
           CLOCKS + SLEEP, status="timeout"),
    attack("stops-itself", "stops its own process", "import os\nos.kill(os.getpid(), 19)",
           status="timeout"),
    attack("stops-its-parents", "stops every process that it may signal",
           ALONE + "for pid in (1, 2, os.getppid()):\n    try:\n        os.kill(pid, 19)\n"
           "    except OSError: pass\nos.kill(-1, 19)", status="timeout|graded|crashed"),
    attack("kills-everything", "kills every process that it may signal",
           ALONE + "for pid in (1, os.getppid()):\n    os.kill(pid, 9)\nos.kill(-1, 9)",
           status="graded|crashed"),
    attack("hanging-message", "raises an error whose text never ends", REPR, status="timeout"),
    attack("daemons", "leaves daemons that write to the grade book later", DAEMON),
    attack("limits", "raises its limits, its priority and its rights", LIMITS),
    attack("facilities", "asks the kernel for what escapes accounting", FACILITIES),
    attack("namespaces", "makes namespaces and mounts of its own", NAMESPACES),
    attack("recovers", "hangs in one cell, dies in the next, and answers right",
           "while True: pass", "import os\nos._exit(3)", status="timeout", honest=HONEST),
]  # fmt: skip
