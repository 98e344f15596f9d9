"""Attacks by results: objects that are lazy, endless, of odd kinds, or not what they look like.

Several exercises of one notebook each return another one, so that one process tries many.
"""

from __future__ import annotations

from .attack import Attack, attack

# Each call of an answer returns the next of these.
CYCLE = """\
import itertools
def turns(*makers):
    order = itertools.cycle(makers)
    return lambda *a, **k: next(order)()
"""
ARRAYS = (
    CYCLE
    + """\
import numpy as np
wide = np.broadcast_to(np.float64(1), (5, 2))
self_attention = turns(
    lambda: np.ma.masked_all((5, 2)),
    lambda: np.full((5, 2), np.nan),
    lambda: np.empty((0, 10**9)),
    lambda: np.ones((5, 2), dtype=object),
    lambda: np.zeros((5, 2), dtype=[("a", "f8"), ("b", "i4")]),
    lambda: wide[::-1],
    lambda: np.lib.stride_tricks.as_strided(np.ones(1), (10**6, 10**6), (0, 0)),
    lambda: np.array(["x" * 10**6]),
    lambda: np.array([b"<script>alert(1)</script>"]),
    lambda: np.array("2026", dtype="M8[Y]"),
    lambda: np.float64("inf"),
    lambda: np.ones((1,) * 32),
    lambda: np.ones((5, 2), dtype="longdouble"),
    lambda: np.rec.array([(1, 2)]),
)
permutation_gap = turns(lambda: float("nan"), lambda: float("inf"), lambda: -0.0, lambda: 1e309,
                        lambda: True, lambda: 10**400, lambda: complex("nanj"), lambda: "3.0",
                        lambda: b"3", lambda: None, lambda: NotImplemented, lambda: ...)
"""
)
TENSORS = (
    CYCLE
    + """\
import torch
one = torch.ones(2, 2)
multi_head_attention = turns(
    lambda: torch.empty(2, 3, 5, 8, device="meta"),
    lambda: torch.eye(3).to_sparse(),
    lambda: torch.eye(3).to_sparse_csr(),
    lambda: torch.ones(2, 3, requires_grad=True),
    lambda: torch.ones(2, dtype=torch.complex64).conj(),
    lambda: torch.ones(2, dtype=torch.complex64).conj().imag,
    lambda: torch.quantize_per_tensor(one, 0.1, 0, torch.qint8),
    lambda: torch.nested.nested_tensor([one, torch.ones(1)]),
    lambda: torch.ones(1).expand(10**6, 10**6),
    lambda: torch.empty(0, 10**12),
    lambda: one.to(torch.float8_e4m3fn),
    lambda: torch.nn.Parameter(one),
    lambda: torch.nn.Linear(2, 2),
    lambda: torch.Generator(),
    lambda: torch.func.vmap(lambda t: t)(one),
)
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True
self_attention = turns(lambda: one.as_subclass(Mine), lambda: one.to("meta"), lambda: one)
"""
)
LAZY = (
    CYCLE
    + """\
class Hangs:
    def __repr__(self):
        while True: pass
    __str__ = __len__ = __array__ = __iter__ = __float__ = __repr__
class Raises:
    def __getattribute__(self, name):
        raise RuntimeError("no attribute for you")
    def __repr__(self):
        raise RuntimeError("no words for you")
class Named(type):
    @property
    def __name__(cls):
        return "<script>alert(1)</script>"
class Odd(metaclass=Named): pass
def endless():
    while True:
        yield 1
nested = ()
for _ in range(100_000):
    nested = (nested,)
loop = []
loop.append(loop)
self_attention = turns(endless, Hangs, Raises, Odd, lambda: iter(int, 1), lambda: map(str, [1]),
                       lambda: range(10**18), lambda: print, lambda: type,
                       lambda: open("/dev/zero"))
permutation_gap = turns(lambda: nested, lambda: loop)
failed_requirements = turns(lambda: {frozenset([1])}, lambda: {"a": loop}, lambda: {1: 2},
                            lambda: {"bounded", ("x",)}, lambda: "bounded",
                            lambda: ["bounded"] * 99)
positions_from_causal_average = turns(lambda: [[1], [2, 3]], lambda: [None], lambda: [[[]]],
                                      lambda: [10**30] * 3, lambda: memoryview(b"abc"))
"""
)
ERRORS = """\
class Bad(BaseException):
    def __str__(self):
        raise self
    def __init__(self, *a): self.args = (self,)
def self_attention(*a, **k): raise Bad
class Many(ExceptionGroup): pass
def permutation_gap(*a, **k):
    error = ValueError("x")
    error.__cause__ = error.__context__ = error
    raise Many("many", [error] * 1000)
deep = type("E0", (ValueError,), {})
for number in range(200):
    deep = type(f"E{number}", (deep,), {})
def failed_requirements(*a, **k): raise deep("x" * 10**6)
def positions_from_causal_average(w): raise type("\\x1b[2J" * 100 + "<b>", (ValueError,), {})("y")
"""
IMPOSTORS = """\
import numpy as np
class Meta(type):
    def __instancecheck__(cls, other): return True
    def __subclasscheck__(cls, other): return True
    def __call__(cls, *a, **k): return cls
class self_attention(metaclass=Meta): pass
permutation_gap = property(lambda self: 0.0)
failed_requirements = type("x", (), {"__call__": lambda s, *a: {"bounded"}, "__class__": set})()
positions_from_causal_average = np.frompyfunc(lambda x: x, 1, 1)
multi_head_attention = "not even a function"
"""
DELETED = """\
import builtins, sys
for name in ("len", "print", "open", "ValueError", "Exception", "isinstance", "type", "str"):
    builtins.__dict__.pop(name, None)
sys.modules.clear()
"""
NAMESPACE = """\
class Every(dict):
    def __missing__(self, key): return lambda *a, **k: True
    def __contains__(self, key): return True
shell = get_ipython()
shell.user_ns.update({"self_attention": 1, "__builtins__": {}, "TimeUp": 1, "send": print})
shell.user_ns = Every(shell.user_ns)
"""

ATTACKS: list[Attack] = [
    attack("odd-arrays", "returns arrays of every odd kind, and odd numbers", ARRAYS,
           status="graded|out of memory"),
    attack("odd-tensors", "returns tensors of every odd kind", TENSORS,
           status="graded|crashed"),
    attack("lazy-objects", "returns what never ends, raises when shown, or contains itself", LAZY,
           status="graded|crashed|timeout"),
    attack("odd-errors", "raises errors that cannot be told", ERRORS,
           status="graded|crashed|timeout"),
    attack("impostors", "puts classes, properties and words in the place of functions", IMPOSTORS),
    attack("empty-builtins", "takes the builtins and all modules away", DELETED, least=0.0,
           status="graded|crashed|timeout"),
    attack("namespace", "replaces the names of the notebook by ones that answer to everything",
           NAMESPACE, least=0.0, status="graded|crashed"),
]  # fmt: skip
