"""The doctor names what is missing, with the command that cures it."""

import importlib.metadata
import shutil
import subprocess
import sys
from typing import Any

import pytest

from autograder import course, doctor, gpu, sandbox
from autograder.cli import main
from autograder.doctor import BAD, NOTE, OK, Finding, findings

ALL = ("python", "numpy", "torch", "notebook kernel", "device", "sandbox")


def found(what: str) -> Finding:
    (finding,) = (f for f in findings() if f.what == what)
    return finding


def test_it_looks_at_python_packages_kernel_device_and_sandbox(capsys) -> None:
    code = main(["doctor"])
    shown = capsys.readouterr().out
    for what in ALL:
        assert what in shown
    assert code == (0 if "everything needed is here" in shown else 1)


def test_every_finding_that_is_not_in_order_has_a_cure() -> None:
    for finding in findings():
        assert finding.cure if finding.state != OK else not finding.cure


def test_a_package_that_is_missing_is_named_with_the_command(monkeypatch, capsys) -> None:
    right = importlib.metadata.version

    def version(name: str) -> str:
        if name == "numpy":
            raise importlib.metadata.PackageNotFoundError(name)
        return right(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert found("numpy") == Finding("numpy", "not installed", BAD, doctor.INSTALL)
    assert main(["doctor", "--problems"]) == 1
    shown = capsys.readouterr().out
    assert "✗ numpy" in shown and doctor.INSTALL in shown and "missing: see" in shown


def test_another_version_than_the_pinned_one_is_a_note(monkeypatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1")
    assert found("torch").state == NOTE and doctor.pins()["torch"] in found("torch").cure


def test_a_local_build_of_the_pinned_version_is_the_pinned_version(monkeypatch) -> None:
    pinned = doctor.pins()["torch"]
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{pinned}+cu130")
    assert found("torch").state == OK


@pytest.mark.parametrize(("version", "state"), [((3, 10), BAD), ((3, 14), NOTE), ((3, 12), OK)])
def test_a_python_that_was_not_tried_is_told(monkeypatch, version, state) -> None:
    class Version(tuple):
        """Compares like sys.version_info."""

    monkeypatch.setattr(sys, "version_info", Version((*version, 0)))
    assert doctor._python().state == state


@pytest.mark.parametrize(
    ("program", "state"), [("python", OK), (sys.executable, OK), ("/elsewhere/bin/python", NOTE)]
)
def test_a_kernel_of_another_python_is_told(monkeypatch, program, state) -> None:
    from jupyter_client import kernelspec

    spec = kernelspec.KernelSpec(argv=[program, "-m", "ipykernel"])
    monkeypatch.setattr(kernelspec.KernelSpecManager, "get_kernel_spec", lambda *_: spec)
    assert found("notebook kernel").state == state


def test_no_kernel_at_all_is_missing(monkeypatch) -> None:
    from jupyter_client import kernelspec

    def none(*_: Any) -> None:
        raise kernelspec.NoSuchKernel("python3")

    monkeypatch.setattr(kernelspec.KernelSpecManager, "get_kernel_spec", none)
    assert found("notebook kernel").state == BAD


def test_a_gpu_is_named(monkeypatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Sample GPU")
    monkeypatch.setattr(gpu, "_first_sum", lambda: None)
    assert found("device").found == "CUDA: Sample GPU"


def test_a_gpu_that_does_not_compute_is_a_note_and_the_cpu_does(monkeypatch) -> None:
    import torch

    def fails() -> None:
        raise RuntimeError("CUDA error: no kernel image is available for execution")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "_first_sum", fails)
    device = found("device")
    assert device.state == NOTE and "no kernel image" in device.found and "driver" in device.cure


@pytest.mark.parametrize(("solutions", "state"), [(True, BAD), (False, NOTE)])
def test_without_a_sandbox_a_teacher_misses_something_and_a_student_does_not(
    monkeypatch, solutions, state
) -> None:
    monkeypatch.setattr(sandbox, "problem", lambda: "bubblewrap is missing: install it")
    monkeypatch.setattr(course, "has_solutions", lambda: solutions)
    finding = found("sandbox")
    assert finding.state == state and "install it" in finding.cure


def test_commands_off_the_path_are_told(monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert found("nbgrader").state == NOTE and "activate" in found("nbgrader").cure


def test_a_python_without_the_packages_is_told_instead_of_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "autograder", "doctor"],
        capture_output=True, text=True, cwd=course.ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "is missing in" in done.stderr and doctor.INSTALL in done.stderr
    assert "Traceback" not in done.stderr
