"""Attacks that use up what all share: memory, processes, disk, descriptors, patience."""

from __future__ import annotations

from .attack import Attack, attack

FORKS = """\
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
BUSY = "import os\nfor _ in range(9):\n    if os.fork() == 0:\n        while True: pass\n"
THREADS = """\
import threading, time
started = []
while len(started) < 5000:
    started.append(threading.Thread(target=time.sleep, args=(60,), daemon=True))
    started[-1].start()
"""
LIST = "blocks = []\nwhile True:\n    blocks.append(bytearray(64 << 20))"
SHARED = """\
import mmap
kept = []
while True:
    kept.append(mmap.mmap(-1, 64 << 20))
    for page in range(0, 64 << 20, 4096):
        kept[-1][page] = 1
    if len(kept) * 64 > 3000:
        breach("3 GB of shared memory")
"""
MEMFD = """\
import mmap, os
kept, block = [], b"x" * (16 << 20)
for number in range(200):
    kept.append(os.memfd_create(str(number)))
    for _ in range(3):
        os.write(kept[-1], block)
    if number > 40:
        breach("2 GB in memory files")
"""
SEGMENTS = """\
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
for number in range(40):
    segment = libc.shmget(0, 64 << 20, 0o1600)
    if segment < 0:
        raise OSError("no segment")
    where = libc.shmat(segment, None, 0)
    ctypes.memset(where, 1, 64 << 20)
    libc.shmdt(ctypes.c_void_p(where))
breach("2.5 GB in segments that no process holds")
"""
DISK = """\
import os
written = 0
for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/worker"):
    try:
        for number in range(64):
            with open(f"{folder}/{number}", "wb") as file:
                for _ in range(16):
                    written += file.write(b"x" * (4 << 20))
    except OSError:
        pass
if written > 700 << 20:
    breach(f"{written >> 20} MiB written")
"""
INODES = """\
import os
for folder in ("/tmp/many", "/dev/shm/many"):
    os.makedirs(folder)
    try:
        for number in range(10**7):
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
    except OSError:
        pass
"""
DEEP_FOLDERS = """\
import os
try:
    for _ in range(3000):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
except OSError:
    pass
"""
OUTPUT = """\
import os, sys
for _ in range(300):
    print("x" * (1 << 20))
    sys.stderr.write("y" * (1 << 20))
    for number in (1, 2):
        try:
            os.write(number, b"z" * (1 << 20))
        except OSError:
            pass
display("w" * (8 << 20))
raise Exception("v" * (8 << 20))
"""
DESCRIPTORS = """\
import os
kept = []
try:
    while True:
        kept += os.pipe()
except OSError:
    pass
for number in kept:
    try:
        os.write(number, b"x" * 65536)
    except OSError:
        pass
"""
ZIP = """\
import zlib
small = zlib.compress(b"\\0" * (64 << 20))
large = b""
while True:
    large += zlib.decompress(small)
"""
NUMBERS = "x = 10 ** (10 ** 9)"
TEXT = "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')"
NATIVE = """\
import numpy as np
a = np.ones((3000, 3000))
while True:
    a = a @ a
"""
CALL = """\
import numpy as np
def self_attention(*a, **k): return np.zeros(100 << 17)  # 100 MiB
def permutation_gap(*a, **k): return "x" * (20 << 20)
def failed_requirements(*a, **k): return {str(n) for n in range(10**5)}
def positions_from_causal_average(w): return list(range(3 * 10**5))
"""

ATTACKS: list[Attack] = [
    attack("fork-bomb", "forks for ever", FORKS, status="timeout|crashed|out of memory"),
    attack("busy-forks", "keeps more processors busy than it has", BUSY + "while True: pass",
           status="timeout|crashed"),
    attack("threads", "starts five thousand threads", THREADS,
           status="graded|crashed|out of memory|timeout"),
    attack("memory-bomb", "takes memory for ever", LIST, status="out of memory"),
    attack("shared-memory", "takes shared memory, which limits of data do not count", SHARED,
           status="graded|out of memory|timeout"),
    attack("memory-files", "fills memory files that belong to no process", MEMFD,
           status="graded|out of memory"),
    attack("segments", "fills System V segments and lets them go", SEGMENTS,
           status="graded|out of memory"),
    attack("disk", "fills every folder that it may write to", DISK, status="graded|timeout"),
    attack("inodes", "makes empty files for ever", INODES, status="graded|timeout"),
    attack("deep-folders", "nests folders deeper than a path is long", DEEP_FOLDERS),
    attack("output", "writes gigabytes to every stream and into a message", OUTPUT,
           least=0.0, status="graded|timeout|out of memory"),
    attack("open-files", "opens files until there is no number left", DESCRIPTORS,
           status="graded|timeout|crashed"),
    attack("zip-bomb", "unpacks without end", ZIP, status="out of memory|timeout"),
    attack("huge-number", "computes one number that never ends", NUMBERS,
           status="timeout|out of memory"),
    attack("expression", "matches a regular expression that never ends", TEXT, status="timeout"),
    attack("native-loop", "multiplies matrices, where no Python code can be interrupted", NATIVE,
           status="timeout"),
    attack("huge-results", "returns a hundred megabytes and a million items", CALL,
           status="graded|timeout|out of memory"),
]  # fmt: skip
