"""Executes requests on a namespace of answers: in the sandbox, in a notebook, on the reference.

It sits beside the student's code, so it decides nothing: no comparison, no expected value and no
score ever exists here.
"""

from __future__ import annotations

import contextlib
import copy
import operator
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from .replies import Handle, StudentError, Undefined

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = tuple({os.path.realpath(p) + os.sep for p in sysconfig.get_paths().values()}) + (
    "<frozen",
    "<__array_function__",
)
PLAIN = (bool, int, float, complex, str, type(None))


class NamespaceRunner:
    """Runs requests on the objects of a mapping `name → function or class`.

    Inputs are copied before each call: an answer that changes them in place harms nobody else.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._kept: dict[int, Any] = {}

    def run(self, request: dict[str, Any]) -> Any:
        try:
            with _usual_gradients(), _autocast(request.get("autocast")):
                return self._export(self._execute(request))
        except StudentError:
            raise
        except MemoryError as error:
            raise StudentError(("MemoryError", "Exception"), str(error)) from None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise describe(error) from error

    def _execute(self, request: dict[str, Any]) -> Any:
        kind = request["kind"]
        args = self._import(request.get("args", ()))
        kwargs = self._import(request.get("kwargs", {}))
        if kind == "call":
            value = self._named(request["name"])(*args, **kwargs)
            return (value, tuple(args)) if request.get("return_inputs") else value
        if kind == "gradient":
            on = request.get("on")
            target = self._named(request["name"]) if on is None else self._kept[on.number]
            return _gradient(target, args, request["of"], self._import(request["weights"]))
        target = self._kept[request["on"].number]
        if kind == "use":
            value = target(*args, **kwargs)
            return (value, tuple(args)) if request.get("return_inputs") else value
        if kind == "method":
            return getattr(target, request["name"])(*args, **kwargs)
        if kind == "get":
            return operator.attrgetter(request["name"])(target)
        if kind == "cast":
            return _cast(target, request["dtype"], request["through_parent"])
        raise ValueError(f"unknown request {kind!r}")

    def _named(self, name: str) -> Any:
        if name not in self._namespace:
            raise Undefined(name)
        answer = self._namespace[name]
        if not callable(answer):
            kind = type(answer).__name__
            text = f"a later cell gave the name `{name}` to something else, of type {kind}"
            raise StudentError(("TypeError", "Exception"), text)
        return answer

    def _import(self, value: Any) -> Any:
        """A fresh copy of an argument, with kept objects in the place of their handles."""
        if isinstance(value, Handle):
            return self._kept[value.number]
        if isinstance(value, tuple | list):
            return type(value)(self._import(item) for item in value)
        if isinstance(value, dict):
            return {key: self._import(item) for key, item in value.items()}
        return copy.deepcopy(value)

    def _export(self, value: Any) -> Any:
        """Plain data as it is (copied), anything else as a handle."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if isinstance(value, str):  # NumPy's, or of an enumeration
            return str.__str__(value)
        if isinstance(value, tuple):  # a named one too
            return tuple(self._export(item) for item in value)
        if kind in (list, set, frozenset):
            return kind(self._export(item) for item in value)
        if kind is dict and all(type(key) is str for key in value):
            return {key: self._export(item) for key, item in value.items()}
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
            return numpy.array(value, copy=True, subok=False)[()]
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return value.detach().clone()
        number = len(self._kept)
        self._kept[number] = value
        return Handle(number, kind.__name__)


def describe(error: BaseException) -> StudentError:
    """An exception as plain data: names of its classes and its text."""
    types = tuple(c.__name__ for c in type(error).__mro__ if c not in (BaseException, object))
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be shown)"
    return StudentError(types, message, *_place(error))


def _place(error: BaseException) -> tuple[str, int]:
    """(function, line) of the last frame that is the student's own; ("", 0) when there is none."""
    place = ("", 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith((HERE, *LIBRARIES)):
            place = (frame.f_code.co_qualname.rsplit("<locals>.", 1)[-1], line)
    return place


@contextlib.contextmanager
def _usual_gradients() -> Iterator[None]:
    """A scratch cell that switched gradients or autocast for good costs an answer nothing."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "inference_mode"):
        yield
        return
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        yield


def _autocast(dtype: str | None) -> contextlib.AbstractContextManager[Any]:
    if dtype is None:
        return contextlib.nullcontext()
    import torch

    return torch.autocast("cpu", dtype=getattr(torch, dtype))


def _gradient(target: Any, args: Any, of: int | str, weights: Any) -> Any:
    """Gradient of the weighted sum of `target(*args)`; None where none arrives.

    `of` is a parameter's name or an argument's number. Of several results each has its weights, and
    one whose weights are None does not count.
    """
    given = list(args)
    if isinstance(of, int):
        wanted = given[of] = given[of].detach().requires_grad_()
    else:
        wanted = operator.attrgetter(of)(target)
        target.zero_grad()
    several = isinstance(weights, tuple)
    values = target(*given) if several else (target(*given),)
    pairs = zip(values, weights if several else (weights,), strict=True)
    total = sum((value * weight).sum() for value, weight in pairs if weight is not None)
    if not total.requires_grad:
        return None
    total.backward()
    return wanted.grad


def _cast(target: Any, dtype: str, through_parent: bool) -> None:
    import torch

    if through_parent:
        parent = torch.nn.Module()
        parent.child = target
        parent.to(getattr(torch, dtype))
    else:
        target.to(getattr(torch, dtype))
