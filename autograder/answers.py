"""What a check sees of an answer: names to call, objects to use, and a record of all outcomes.

A check is written once and runs over the student's functions in a notebook, over a stand-in for a
sandboxed process, over the reference and over every misconception: each is an `Answers` around a
runner that executes one request and returns plain data.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any

from .replies import Gone, Handle, Outcome, Runner, StudentError

REMEMBERED = 3  # earlier methods of an object that are told with a call of one


class Answers:
    """The names of one answer: `student.apply_rope(x, positions)`.

    Calls return plain data (NumPy arrays, torch tensors, numbers, tuples), or an `Instance` for
    anything else, such as an object of the student's class. What the answer raises arrives as
    `StudentError`. `trace` lists every outcome in order.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._autocast: str | None = None
        self._made: dict[int, str] = {}
        self._done_to: dict[int, list[str]] = {}
        self._used: dict[int, str] = {}
        self._calls: list[tuple[Any, str]] = []
        self.trace: list[Outcome] = []

    def __getattr__(self, name: str) -> Answer:
        if name.startswith("_"):
            raise AttributeError(name)
        return Answer(self, name)

    @contextlib.contextmanager
    def autocast(self, dtype: str) -> Iterator[None]:
        """Requests inside run under `torch.autocast` to this dtype (`"bfloat16"`)."""
        self._autocast = dtype
        try:
            yield
        finally:
            self._autocast = None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Requests inside leave no trace: no mistake is recognised by them, and none is told."""
        before = len(self.trace)
        told = {number: list(done) for number, done in self._done_to.items()}
        try:
            yield
        finally:
            del self.trace[before:]
            self._done_to = told

    def _send(self, **request: Any) -> Any:
        request = _plain(request)
        if self._autocast is not None:
            request["autocast"] = self._autocast
        call = self._describe(request)
        self._calls.append((None, call))
        try:
            value = self._runner.run(request)
        except StudentError as error:
            self.trace.append(Outcome(error=error))
            raise
        self.trace.append(Outcome(value=value))
        if isinstance(value, Handle):
            self._made[value.number] = call
        value = self._wrap(value)
        self._calls[-1] = value, call
        return value

    def told_call(self, about: Any = None) -> str:
        """The request that returned `about`, as a person would write it, long arrays cut short.

        What no single request returned is told with the latest of them.
        """
        if not self._calls:
            return ""
        known = about is not None and not isinstance(about, int | str)  # equal ones may be one
        for itself in (True, False) if known else ():
            wanted = about if itself else _owner(about)
            for value, call in reversed(self._calls):
                if any((part if itself else _owner(part)) is wanted for part in _parts(value)):
                    return f"The call: {call}"
        which = "The call" if len(self._calls) == 1 or about is None else "The latest call"
        return f"{which}: {self._calls[-1][1]}"

    def _describe(self, request: dict[str, Any]) -> str:
        name = request.get("name", "")
        given = [shown(value) for value in request.get("args", ())]
        given += [f"{key}={shown(value)}" for key, value in request.get("kwargs", {}).items()]
        if request["kind"] == "cast":
            parent = " through its parent" if request["through_parent"] else ""
            given = [f"{request['dtype']}{parent}"]
            name = "to"
        call = "" if request["kind"] == "get" else f"({', '.join(given)})"
        if request["kind"] == "gradient":
            of, made = request["of"], name or self._made[request["on"].number]
            what = f"its {of}" if isinstance(of, str) else f"argument {of + 1}"
            return f"the gradient of {made}{call} for {what}"
        if "autocast" in request:
            call += f" under autocast to {request['autocast']}"
        if "on" not in request:
            return name + call
        number = request["on"].number
        made = self._made.get(number, request["on"].type_name)
        text = (f".{name}" if name else "") + call
        if request["kind"] == "cast":
            self._made[number] = made + text
        done = self._done_to.setdefault(number, [])
        told = ["…", *done[-REMEMBERED:]] if len(done) > REMEMBERED else done
        told = [made, *told, text] if done else [made + text]
        if request["kind"] == "method":
            done.append(text)
        earlier = self._used.get(number)
        if request["kind"] == "use":
            self._used[number] = call
            if earlier not in (None, call):
                told[-1] += f", on the same object after {earlier}"
        return ", then ".join(told)

    def _wrap(self, value: Any) -> Any:
        if isinstance(value, Handle):
            return Instance(self, value)
        if isinstance(value, tuple):
            return tuple(self._wrap(item) for item in value)
        return value


def _parts(value: Any) -> Iterator[Any]:
    """A reply, and what it is made of."""
    yield value
    if isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item)


def _owner(value: Any) -> Any:
    """The array or tensor that a view looks into; anything else is its own."""
    while (base := getattr(value, "base", getattr(value, "_base", None))) is not None:
        value = base
    return value


class Answer:
    """One name of an answer, ready to be called."""

    def __init__(self, answers: Answers, name: str) -> None:
        self._answers = answers
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._answers._send(kind="call", name=self.name, args=args, kwargs=kwargs)

    def gradient(self, of: int, *args: Any, weights: Any) -> Any:
        """Gradient for the argument of this number; see `Instance.gradient`."""
        return self._answers._send(
            kind="gradient", name=self.name, of=of, args=args, weights=weights
        )

    def with_inputs(self, *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
        """(value, the positional inputs as they are after the call): shows a change in place."""
        return _both(
            self._answers._send(
                kind="call", name=self.name, args=args, kwargs=kwargs, return_inputs=True
            ),
            args,
        )


class Instance:
    """An object of the student's, used from afar."""

    def __init__(self, answers: Answers, handle: Handle) -> None:
        self._answers = answers
        self.handle = handle

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._answers._send(kind="use", on=self, args=args, kwargs=kwargs)

    def with_inputs(self, *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
        """(value, the positional inputs as they are after the call): shows a change in place."""
        return _both(
            self._answers._send(kind="use", on=self, args=args, kwargs=kwargs, return_inputs=True),
            args,
        )

    def method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method: `cache.method("append", k, v)`; `"__len__"` for `len(cache)`."""
        return self._answers._send(kind="method", on=self, name=name, args=args, kwargs=kwargs)

    def get(self, name: str) -> Any:
        """Read an attribute: `cache.get("keys")`, `module.get("weight.requires_grad")`."""
        return self._answers._send(kind="get", on=self, name=name)

    def gradient(self, of: int | str, *args: Any, weights: Any) -> Any:
        """Gradient of `(module(*args) * weights).sum()`, or None where none arrives.

        It is taken for the parameter of this name, or for the argument of this number. Of several
        results each has its weights: `weights` is then a tuple, with None for what does not count.
        """
        return self._answers._send(kind="gradient", on=self, of=of, args=args, weights=weights)

    def cast(self, dtype: str, *, through_parent: bool = False) -> None:
        """`module.to(dtype)`, or the same of a parent module that holds it."""
        self._answers._send(kind="cast", on=self, dtype=dtype, through_parent=through_parent)


def _both(reply: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """(value, inputs) as they were asked for: a process that answers otherwise has answered not."""
    pair = reply if isinstance(reply, tuple) and len(reply) == 2 else (None, None)
    value, inputs = pair
    if not isinstance(inputs, tuple) or len(inputs) != len(args):
        raise Gone("the process sent no proper reply")
    return value, inputs


def shown(value: Any) -> str:
    """One argument in a few words: short arrays by their numbers, others by dtype and shape."""
    if isinstance(value, Handle):
        return f"a {value.type_name}"
    shape, dtype = getattr(value, "shape", None), str(getattr(value, "dtype", ""))
    if shape is None or dtype == "":
        text = repr(value) if _is_short(value) else ""
        return text if 0 < len(text) <= 60 else f"a {type(value).__name__}"
    if len(shape) <= 2 and 0 < math.prod(shape) <= 6:
        numbers = repr(value.tolist())
        return re.sub(r"-?\d+\.\d+(e[-+]\d+)?", lambda m: f"{float(m[0]):.6g}", numbers)
    return f"{dtype.removeprefix('torch.')} of shape {tuple(shape)}"


def _is_short(value: Any) -> bool:
    """Whether a value is small enough to be written out, before anybody tries."""
    if isinstance(value, list | tuple):
        return len(value) <= 20 and all(map(_is_short, value))
    if isinstance(value, str):
        return len(value) <= 60
    return value is None or isinstance(value, bool | int | float | complex)


def _plain(value: Any) -> Any:
    """Instances among the arguments become their handles."""
    if isinstance(value, Instance):
        return value.handle
    if isinstance(value, tuple | list):
        return type(value)(_plain(item) for item in value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
