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
CPU = "cpu"
PLAIN = (bool, int, float, complex, str, type(None))


class NamespaceRunner:
    """Runs requests on the objects of a mapping `name → function or class`.

    Inputs are copied before each call: an answer that changes them in place harms nobody else. A
    request that names a `device` has its tensors moved there, and the module that it makes. Its
    reply is then a pair: the value, on the CPU again, and the devices its numbers came from.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._kept: dict[int, Any] = {}

    def run(self, request: dict[str, Any]) -> Any:
        device = request.get("device")
        try:
            with usual_torch(device or CPU), _autocast(device or CPU, request.get("autocast")):
                if device is None:
                    return self._export(self._execute(request))
                value = self._export(self._execute(moved(request, device)))
                _wait_for(device)
                return moved(value, CPU), sorted(set(_places(value)))
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
            if "device" in request:
                _move_module(value, request["device"])
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
def usual_torch(device: str = CPU) -> Iterator[None]:
    """A scratch cell that set gradients, autocast or a device for good costs an answer nothing."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "inference_mode"):
        yield
        return
    with contextlib.ExitStack() as usual:
        usual.enter_context(torch.inference_mode(False))
        usual.enter_context(torch.enable_grad())
        usual.enter_context(torch.autocast(device, enabled=False))
        if not _made_on_cpu(torch):
            usual.enter_context(torch.device(CPU))
        yield


def _made_on_cpu(torch: Any) -> bool:
    """Whether a tensor that is made without a device lies on the CPU."""
    try:
        return bool(torch.get_default_device().type == CPU)
    except RuntimeError:  # it lies on a GPU that has stopped
        return False


def _autocast(device: str, dtype: str | None) -> contextlib.AbstractContextManager[Any]:
    if dtype is None:
        return contextlib.nullcontext()
    import torch

    return torch.autocast(device, dtype=getattr(torch, dtype))


def moved(value: Any, device: str) -> Any:
    """Plain data as it is, with every tensor in it on this device."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.to(device)
    if type(value) in (tuple, list):
        return type(value)(moved(item, device) for item in value)
    if type(value) is dict:
        return {key: moved(item, device) for key, item in value.items()}
    return value


def _move_module(value: Any, device: str) -> None:
    """`value.to(device)`, as whoever makes a module for a GPU does next."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        value.to(device)


def _places(value: Any) -> Iterator[str]:
    """Where the fractions in plain data lie; a counter in integers may lie anywhere."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _places(item)
    elif isinstance(value, dict):
        yield from _places(list(value.values()))
    elif hasattr(value, "is_floating_point"):
        if value.is_floating_point() or value.is_complex():
            yield value.device.type
    elif hasattr(value, "dtype") and value.dtype.kind in "fc":
        yield CPU  # NumPy knows no other


def _wait_for(device: str) -> None:
    """Until all is computed: what goes wrong on a GPU is told late, and by whatever comes next."""
    if device == "cuda":
        sys.modules["torch"].cuda.synchronize()


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
