"""Which families are held against other projects, and what happens where those are absent.

Why: peers are optional and golden values are not. A family that only peers look at would be
unwatched wherever they are not installed, and nobody would be told.
"""

import importlib
import importlib.metadata
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests import peers

TESTS = Path(__file__).parent
# family: where its golden values are tested, and how their names begin
FAMILIES = {
    "RoPE": ("rope", ("rope.interleaved.", "rope.half.")),
    "partial RoPE": ("rope", ("rope.partial.interleaved", "rope.partial.half")),
    "linear scaling": ("context_extension", ("ext.pi.",)),
    "NTK-aware base": ("context_extension", ("ext.ntk.",)),
    "dynamic NTK": ("context_extension", ("ext.dynamic.",)),
    "YaRN": ("context_extension", ("ext.yarn.",)),
    "Llama 3": ("context_extension", ("ext.llama3.",)),
    "LongRoPE": ("context_extension", ("ext.longrope.",)),
    "ALiBi slopes": ("alibi", ("alibi.slopes.8", "alibi.slopes.3", "alibi.slopes.20")),
    "ALiBi bias": ("alibi", ("alibi.symmetric.",)),
    "T5 buckets": ("alibi", ("t5.bucket.bidir=True", "t5.bucket.bidir=False")),
    "axial RoPE": ("two_d", ("2d.ropevit.axial.apply.",)),
    "sines of a grid": ("two_d", ("2d.mae.", "2d.rowfirst.")),
}


def marks_in(module: types.ModuleType) -> Iterator[tuple[types.FunctionType, list]]:
    """Tests of a module with their marks, those of the module included."""
    of_all = getattr(module, "pytestmark", [])
    for name, function in vars(module).items():
        if name.startswith("test_") and getattr(function, "__module__", "") == module.__name__:
            yield function, [*getattr(function, "pytestmark", []), *of_all]


def golden_that_always_run(module: types.ModuleType) -> set[str]:
    """Names of the golden values that a test is given which nothing can take away.

    Such a test carries no mark but its parameters, and no set of parameters carries one either.
    """
    names = set()
    for _, marks in marks_in(module):
        if {mark.name for mark in marks} != {"parametrize"}:
            continue
        for mark in marks:
            if mark.args[0] == "entry":
                names |= {p.values[0]["id"] for p in mark.args[1] if not p.marks}
    return names


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_golden_values_that_always_run(family):
    chapter, beginnings = FAMILIES[family]
    names = golden_that_always_run(importlib.import_module(f"tests.test_solutions_{chapter}"))
    for beginning in beginnings:
        assert any(name.startswith(beginning) for name in names), f"{family}: no {beginning}…"


def test_every_family_is_compared_with_a_peer_and_no_other():
    files = sorted(TESTS.glob("test_peers_*.py"))
    marked = set()
    for file in files:
        for function, marks in marks_in(importlib.import_module(f"tests.{file.stem}")):
            families = [mark.args for mark in marks if mark.name == "peers"]
            assert len(families) == 1, f"{file.name}: {function.__name__} must name one family"
            marked.add(*families[0])
    assert marked == set(FAMILIES)


def test_a_golden_test_that_could_be_skipped_does_not_count():
    """The table above must be able to fail."""
    module = types.ModuleType("made_up")

    def test_it(entry):
        pass

    test_it.__module__ = "made_up"
    module.test_it = test_it
    given = pytest.mark.parametrize("entry", [pytest.param({"id": "a"})])
    test_it.pytestmark = [given.mark]
    assert golden_that_always_run(module) == {"a"}
    for mark in (pytest.mark.skipif(False, reason=""), pytest.mark.long, pytest.mark.peers("RoPE")):
        test_it.pytestmark = [given.mark, mark.mark]
        assert golden_that_always_run(module) == set()
    marked = pytest.param({"id": "a"}, marks=pytest.mark.cuda)
    test_it.pytestmark = [pytest.mark.parametrize("entry", [marked]).mark]
    assert golden_that_always_run(module) == set()


# --- peers that are not there -------------------------------------------------------------------


@pytest.fixture
def installed(monkeypatch):
    """Says which version of every package is installed; None for none."""

    def set_to(version: str | None) -> None:
        def of(package: str) -> str:
            if version is None:
                raise importlib.metadata.PackageNotFoundError(package)
            return version

        monkeypatch.setattr(importlib.metadata, "version", of)

    return set_to


@pytest.mark.parametrize("version, found", [(None, "not installed"), ("5.24.1", "5.24.1 is")])
def test_a_peer_that_is_absent_or_another_is_skipped_aloud_with_the_cure(installed, version, found):
    installed(version)
    with pytest.raises(pytest.skip.Exception) as skipped:
        peers.peer("transformers.models.llama.modeling_llama")
    for word in ("NOT COMPARED WITH transformers==5.24.0", found, "make test-peers"):
        assert word in str(skipped.value)


def test_a_peer_of_the_pinned_version_that_does_not_import_is_an_error(installed):
    installed("2.31.10")
    with pytest.raises(ModuleNotFoundError):
        peers.peer("x_transformers.no_such_module")


def test_a_peer_without_a_pin_is_a_mistake_of_the_test():
    with pytest.raises(LookupError, match="requirements-peers.txt must pin numpy"):
        peers.peer("numpy")


# --- bounds that must mean something ------------------------------------------------------------


def test_agreement_ends_at_the_bound_and_at_other_shapes():
    peers.agree([1.0, 2.0], [1.0, 2.001], [0, 0.001001])
    with pytest.raises(AssertionError, match="allowed 1.00e-04"):
        peers.agree([1.0, 2.0], [1.0, 2.001], [0, 1e-4])
    with pytest.raises(AssertionError):
        peers.agree([1.0, float("nan")], [1.0, 2.0], 1e-4)
    with pytest.raises(AssertionError):
        peers.agree([[1.0, 2.0]], [1.0, 2.0], 1e-4)


def test_positions_at_which_float32_angles_mean_nothing_are_refused():
    x, ladder = np.ones((1, 2)), np.ones(1)
    for position, refused in ((2000, False), (131_072, True)):
        bound = peers.rotation_bound(x, np.array([position]), ladder, "interleaved")
        if not refused:
            peers.agree(x, x, bound)
            continue
        with pytest.raises(AssertionError, match="would let anything pass"):
            peers.agree(x, x, bound)
