"""PyTorch answers are looked at a second time on a GPU: told, and worth no point either way.

Where there is no GPU the same path runs on the device of `standin.py`, or between faults that are
put in its way; what only a GPU can show is skipped aloud.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autograder import check, cli, course, gpu, local, report
from autograder.exercise import Exercise
from autograder.gpu import Place
from autograder.replies import StudentError
from autograder.results import CheckResult, ExerciseResult
from autograder.runner import NamespaceRunner
from autograder.running import PUBLIC_SEED
from autograder.second_look import ROOM, OnDevice, SecondLook, look_again
from autograder.standard import standard
from tests.devices import MARKS
from tests.standin import DEVICE, Present, There

TORCH = [e for e in course.exercises().values() if e.room == ROOM]
STANDIN = Place(DEVICE, "stand-in")
HERE = Place("cpu", "the CPU again")
NONE = Place(why_not="PyTorch sees no GPU here")
LOUD = "NOT TRIED ON CUDA: PyTorch sees no GPU here. No point depends on it."
ASSERT = "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously"
PLACES = [
    pytest.param(STANDIN, id="stand-in"),
    pytest.param(
        Place(name="GPU"),
        id="cuda",
        marks=MARKS,
    ),
]
at_each_place = pytest.mark.parametrize("place", PLACES)


def attention() -> tuple[Exercise, Any]:
    exercise = course.find_exercise("multi_head_attention")
    return exercise, vars(course.reference(exercise))[exercise.name]


def rotary() -> tuple[Exercise, Any]:
    exercise = course.find_exercise("RotaryEmbedding")
    return exercise, vars(course.reference(exercise))[exercise.name]


@contextlib.contextmanager
def present(place: Place) -> Iterator[None]:
    with Present() if place == STANDIN else contextlib.nullcontext():
        yield


def looked(exercise: Exercise, answer: Any, place: Place) -> tuple[ExerciseResult, SecondLook]:
    """The result on the CPU, and the second look there."""
    result = local.examine(answer, exercise)
    with present(place):
        return result, local.examine_there(answer, exercise, result, place)


@at_each_place
@pytest.mark.parametrize("exercise", TORCH, ids=lambda e: e.id)
def test_the_references_pass_there_whatever_they_pass_on_the_cpu(
    exercise: Exercise, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = vars(course.reference(exercise))
    beside = {name: reference[name] for name in exercise.needs}
    monkeypatch.setattr(local, "_beside", lambda *_: beside)
    result, look = looked(exercise, reference[exercise.name], place)
    assert result.status == "passed"
    assert [(c.name, c.message, c.fault) for c in look.asked if not c.passed] == []
    assert len(look.asked) == len(result.checks) and not look.ended
    assert look.headline().endswith(f"the same {len(result.checks)} checks pass there too.")


@at_each_place
def test_a_result_that_is_left_on_the_cpu_is_found_there_alone(place: Place) -> None:
    exercise, right = attention()

    def multi_head_attention(q, k, v, mask=None):  # type: ignore[no-untyped-def]
        return right(q.cpu(), k.cpu(), v.cpu(), None if mask is None else mask.cpu())

    result, look = looked(exercise, multi_head_attention, place)
    assert result.status == "passed" and result.points == exercise.points
    assert len(look.failed) == len(result.checks)
    assert f"The input is on {place.device}, but the result is on cpu" in look.failed[0].message
    assert "The call: multi_head_attention(float32 of shape" in look.failed[0].message


@at_each_place
def test_a_table_that_is_made_on_the_cpu_is_found_there_alone(place: Place) -> None:
    exercise, right = rotary()

    class RotaryEmbedding(right):  # type: ignore[misc, valid-type]
        def forward(self, q, k, positions):  # type: ignore[no-untyped-def]
            rotated_q, rotated_k = super().forward(q, k, positions)
            return rotated_q * torch.ones(q.shape[-1], dtype=q.dtype), rotated_k

    result, look = looked(exercise, RotaryEmbedding, place)
    assert result.status == "passed"
    assert any("all tensors to be on the same device" in c.message for c in look.failed)
    assert not any(c.fault for c in look.asked)


@at_each_place
def test_a_plain_tensor_of_a_module_is_left_behind_and_a_buffer_is_not(place: Place) -> None:
    exercise, right = rotary()

    class Buffered(right):  # type: ignore[misc, valid-type]
        def __init__(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            super().__init__(*args, **kwargs)
            self.register_buffer("one", torch.ones(1, dtype=torch.int64), persistent=False)

        def forward(self, q, k, positions):  # type: ignore[no-untyped-def]
            return super().forward(q, k, positions * self.one)

    class Plain(Buffered):
        def __init__(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            super().__init__(*args, **kwargs)
            del self.one
            self.one = torch.ones(1, dtype=torch.int64)

    for answer, left_behind in ((Buffered, False), (Plain, True)):
        result, look = looked(exercise, answer, place)
        assert result.status == "passed" and bool(look.failed) is left_behind
    assert any("all tensors to be on the same device" in c.message for c in look.failed)


def test_tensors_move_in_tuples_lists_and_dicts_and_come_back_to_the_cpu() -> None:
    seen: list[Any] = []

    def answer(x: Any, *rest: Any, **named: Any) -> Any:
        seen.extend([x, rest[0][0], rest[1][0], named["state"]["w"]])
        return x, {"again": [x * 2]}

    one = torch.ones(2)
    with Present():
        value, places = NamespaceRunner({"f": answer}).run(
            {
                "kind": "call",
                "name": "f",
                "args": (one, (one,), [one]),
                "kwargs": {"state": {"w": one}, "n": 3},
                "device": DEVICE,
            }
        )
        assert all(isinstance(x, There) for x in seen)
    assert places == [DEVICE]
    assert value[0].device.type == "cpu" and value[1]["again"][0].tolist() == [2.0, 2.0]


def test_only_what_holds_fractions_has_to_come_back_from_the_device() -> None:
    def run(value: Any) -> Any:
        runner = OnDevice(NamespaceRunner({"f": lambda: value}), DEVICE)
        return runner.run({"kind": "call", "name": "f", "args": (), "kwargs": {}})

    with Present():
        assert run((torch.tensor(3), 2.5, np.arange(2), "x"))[1] == 2.5
        for left in (torch.ones(1), np.ones(2), [torch.ones(1, dtype=torch.complex64)]):
            with pytest.raises(AssertionError, match=f"is on {DEVICE}, but the result is on cpu"):
                run(left)


def test_autocast_is_the_devices_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def recorded(device: str, **how: Any) -> Any:
        asked.append((device, how))
        return contextlib.nullcontext()

    monkeypatch.setattr(torch, "autocast", recorded)
    request = {"kind": "call", "name": "f", "args": (), "kwargs": {}, "autocast": "bfloat16"}
    NamespaceRunner({"f": lambda: 1}).run(request)
    NamespaceRunner({"f": lambda: 1}).run({**request, "device": "cuda:0"})
    on = [device for device, how in asked if how.get("dtype") == torch.bfloat16]
    assert on == ["cpu", "cuda:0"]


class Faulty:
    """A runner that answers well so many times, and then as a GPU in trouble does."""

    def __init__(self, answers: dict[str, Any], good: int, error: StudentError) -> None:
        self.inner, self.left, self.error, self.after = NamespaceRunner(answers), good, error, 0

    def run(self, request: dict[str, Any]) -> Any:
        if self.left == 0:
            self.after += 1
            raise self.error
        self.left -= 1
        return self.inner.run(request)


def asked_of(faulty: Faulty) -> tuple[ExerciseResult, SecondLook]:
    exercise, answer = attention()
    result = local.examine(answer, exercise)
    held = standard(exercise.chapter)
    return result, look_again(exercise, result, faulty, held, HERE, PUBLIC_SEED)


@pytest.mark.parametrize(
    ("types", "message", "words"),
    [
        (("AcceleratorError", "RuntimeError"), ASSERT, "an index outside its table"),
        (("RuntimeError",), "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED", "CUBLAS_STATUS"),
        (("OutOfMemoryError", "RuntimeError"), "CUDA out of memory.", "has no memory left"),
    ],
)
def test_an_error_of_the_device_ends_the_asking_and_is_no_refusal(
    types: tuple[str, ...], message: str, words: str
) -> None:
    """The fault comes while bad input is asked, where any error but the device's would do."""
    exercise, answer = attention()
    refusals = Faulty({exercise.name: answer}, 10**9, StudentError(types, message))
    calls = [0]
    counting = refusals.inner.run

    def counted(request: dict[str, Any]) -> Any:
        calls[0] += 1
        try:
            return counting(request)
        except StudentError:
            if refusals.left:
                refusals.left = 0
            raise refusals.error from None

    refusals.inner.run = counted  # type: ignore[method-assign]
    result, look = asked_of(refusals)
    assert result.status == "passed" and calls[0] > 5
    assert words in look.ended and "The check was: Shapes that do not match raise" in look.ended
    assert look.failed == [] and 0 < len(look.asked) < len(result.checks)
    assert refusals.after == 0, "asked again after the device had stopped"
    said = look.headline()
    assert f"{len(look.asked)} of these {len(result.checks)} checks pass" in said
    assert said.endswith("No point depends on it.")


def test_an_ordinary_error_is_a_finding_and_the_next_check_is_asked() -> None:
    exercise, answer = attention()
    error = StudentError(("RuntimeError", "Exception"), "no such thing")
    result, look = asked_of(Faulty({exercise.name: answer}, 1, error))
    assert len(look.asked) == len(result.checks) and len(look.failed) == len(result.checks) - 1
    assert "RuntimeError: no such thing" in look.failed[0].message and not look.ended


def test_after_a_gpu_has_stopped_the_cpu_is_asked_as_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped() -> None:
        raise torch.AcceleratorError(ASSERT)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "_first_sum", stopped)
    exercise, answer = attention()
    check(answer)
    shown = capsys.readouterr().out
    assert f"{exercise.id}: 10 of 10 public checks passed" in shown
    assert "NOT TRIED ON CUDA: the GPU stopped (CUDA error: device-side assert triggered)" in shown
    assert "restart the kernel. No point depends on it." in shown


def test_where_an_answer_stops_the_gpu_the_kernel_is_to_be_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exercise, right = attention()

    def multi_head_attention(q, k, v, mask=None):  # type: ignore[no-untyped-def]
        if mask is not None and isinstance(q, There):
            raise torch.AcceleratorError(ASSERT)
        return right(q, k, v, mask)

    for broken in (True, False):
        monkeypatch.setattr(gpu, "find", lambda broken=broken: Place(broken=broken))
        result, look = looked(exercise, multi_head_attention, STANDIN)
        assert result.status == "passed"
        assert ("Restart the kernel" in look.headline()) is broken
        assert "The others were not asked: the GPU stopped" in look.headline()


def test_without_a_gpu_check_says_so_aloud_and_of_torch_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "find", lambda: NONE)
    check(attention()[1])
    assert capsys.readouterr().out.count(LOUD) == 1
    numpy = next(e for e in course.exercises().values() if e.room != ROOM)
    check(vars(course.reference(numpy))[numpy.name])
    assert "CUDA" not in capsys.readouterr().out


def test_whoever_interrupts_the_second_look_has_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hangs(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "examine_there", hangs)
    with pytest.raises(KeyboardInterrupt):
        check(attention()[1])
    assert "10 of 10 public checks passed" in capsys.readouterr().out


def test_an_answer_that_passes_nothing_is_not_asked_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def multi_head_attention(q, k, v, mask=None):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    result, look = looked(attention()[0], multi_head_attention, STANDIN)
    assert result.points == 0 and not look.tried and look.asked == []
    assert "NOT TRIED ON CUDA: no check passes on the CPU yet." in look.headline()


def test_text_html_and_json_tell_the_same() -> None:
    rows = [CheckResult(n, f"It does {n}.", 1, False, True) for n in "abc"]
    result = ExerciseResult("c.d", 1.0, 2, "passed", rows)
    bad = CheckResult("b", "It does b.", 1, False, False, "Left <b>behind</b>.")
    look = SecondLook(Place(name="GPU & Co"), 3, [rows[0], bad], "the GPU stopped.")
    text = report.text(result, public=True, look=look)
    html = report.html_block(result, public=True, look=look)
    for words in ("1 of these 3 checks pass there too.", "the GPU stopped.", "costs no point:"):
        assert words in text and words in html and words in look.as_json()["said"]
    assert "    ✗ It does b.\n        Left <b>behind</b>." in text
    assert "CUDA (GPU &amp; Co)" in html and "Left &lt;b&gt;behind&lt;/b&gt;." in html
    told = look.as_json()
    assert (told["device"], told["asked"], told["passed"]) == ("GPU & Co", 2, 1)
    assert told["failed"] == [{"name": "b", "message": "Left <b>behind</b>."}]
    assert report.text(result, public=True) in text and "CUDA" not in report.text(
        result, public=True
    )


def test_a_fault_of_the_checker_is_no_finding_and_is_counted() -> None:
    broken = CheckResult("a", "A.", 1, False, False, "The checker itself failed.", fault="trace")
    look = SecondLook(Place(name="X"), 2, [broken, CheckResult("b", "B.", 1, False, True)])
    assert look.failed == []
    assert look.headline() == (
        "CUDA (X): 1 of these 2 checks pass there too. Of 1 it cannot be told, since the checker "
        "itself failed there. No point depends on it."
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("Found no NVIDIA driver on your system. Please check", "Found no NVIDIA driver on your"),
        ("The NVIDIA driver on your system is too old (found version 11040). U", "is too old"),
        ("No CUDA GPUs are available", "No CUDA GPUs are available"),
    ],
)
def test_a_build_for_cuda_says_why_it_sees_no_gpu(
    monkeypatch: pytest.MonkeyPatch, error: str, words: str
) -> None:
    def init() -> None:
        raise RuntimeError(error)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", init)
    place = gpu.find()
    assert words in place.why_not and "Please" not in place.why_not and not place.broken


@pytest.mark.parametrize(
    ("error", "words", "broken"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), "no memory left", False),
        (torch.AcceleratorError("CUDA error: no kernel image"), "no kernel image", True),
        (RuntimeError("odd"), "the GPU does not answer (odd)", True),
    ],
)
def test_a_gpu_that_cannot_add_two_numbers_is_not_used(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str, broken: bool
) -> None:
    def first_sum() -> None:
        raise error

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "_first_sum", first_sum)
    place = gpu.find()
    assert words in place.why_not and place.broken is broken


def test_a_device_that_a_cell_made_the_default_changes_no_result() -> None:
    exercise, answer = attention()
    torch.set_default_device("meta")
    try:
        result = local.examine(answer, exercise)
    finally:
        torch.set_default_device(None)
    assert result.status == "passed"


# ------------------------------------------------------------------- python -m autograder check


@pytest.fixture
def answers(tmp_path: Path) -> list[str]:
    """What asks for an answer in NumPy, one in PyTorch, and another that is not there."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "def multi_head_attention(q, k, v, mask=None):\n"
        "    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n"
        "def rotate_2d(vector, angle):\n    return vector\n"
    )
    names = ("multi_head_attention", "rotate_2d", "alibi_sdpa")
    return ["check", str(file), *(word for name in names for word in ("--exercise", name))]


def test_the_command_tells_once_that_there_is_no_gpu(
    answers: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "find", lambda: NONE)
    cli.main([*answers, "--without-sandbox"])
    shown = capsys.readouterr().out
    assert shown.count("CUDA") == shown.count(LOUD) == 1


def test_the_command_asks_a_process_of_its_own_there(
    answers: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The CPU stands in for the GPU: what is asked and told crosses the wire just so."""
    monkeypatch.setattr(gpu, "find", lambda: HERE)
    cli.main([*answers, "--without-sandbox", "--json"])
    rows = {r["id"]: r for r in map(json.loads, capsys.readouterr().out.splitlines())}
    assert "cuda" not in rows["rope.rotate_2d"]
    assert "no check passes on the CPU yet" in rows["alibi.alibi_sdpa"]["cuda"]["said"]
    told = rows["order_blindness.multi_head_attention"]
    passed = sum(c["passed"] for c in told["checks"])
    assert told["cuda"]["asked"] == told["cuda"]["passed"] == passed > 3
    assert told["cuda"]["device"] == HERE.name and told["cuda"]["failed"] == []


@pytest.mark.sandbox
def test_the_sandbox_hides_the_gpu_and_says_so(
    answers: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "find", lambda: Place(name="GPU"))
    cli.main(answers)
    assert "NOT TRIED ON CUDA: the sandbox hides the GPU" in capsys.readouterr().out
