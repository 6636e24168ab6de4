"""Compiled code that was cut short is known by what a process says when it dies of it, and removed."""

import sys
from pathlib import Path

import pytest

from ops import compiled, doctor
from ops.children import Backoff, Child, Program
from ops.settings import load
from tests.fixtures.eventually import soon

PROGRAM = "import pathlib, signal, once; pathlib.Path('up').touch(); signal.pause()"


def program(folder: Path) -> Program:
    """Imports one module, whose compiled code lies in a folder of its own; says by a file that it came that far."""
    (folder / "once.py").write_text("VALUES = {number: str(number) for number in range(100)}\n")
    code = f"import os, sys; os.chdir({str(folder)!r}); sys.path.insert(0, {str(folder)!r}); {PROGRAM}"
    given = {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    return Program("dummy", (sys.executable, "-P", "-c", code), given, folder / "dummy.log", stop_seconds=30.0)


async def run_until_up(child: Child, folder: Path) -> None:
    child.start()
    try:
        await soon((folder / "up").exists)
    finally:
        await child.stop()


def mend(of: Program) -> str | None:
    return "cleared" if compiled.clear(of) else None


async def test_a_process_that_dies_of_it_comes_up_again(tmp_path: Path) -> None:
    of, said = program(tmp_path), list[str]()
    await run_until_up(Child(of, said.append), tmp_path)
    (tmp_path / "up").unlink()
    [file] = (tmp_path / "compiled").rglob("once*.pyc")
    file.write_bytes(file.read_bytes()[:-20])

    await run_until_up(Child(of, said.append, Backoff(0.05, 0.1), mend), tmp_path)

    assert "dummy: cleared" in said
    assert len(file.read_bytes()) > 100


async def test_a_process_that_dies_of_something_else_keeps_it(tmp_path: Path) -> None:
    of, said = program(tmp_path), list[str]()
    (tmp_path / "compiled").mkdir()
    (tmp_path / "once.py").write_text("raise EOFError('of the mail server')\n")
    child = Child(of, said.append, Backoff(0.05, 0.1), mend)
    child.start()
    await soon(lambda: child.restarts == 2)
    await child.stop()

    assert (tmp_path / "compiled").is_dir()
    assert not any("cleared" in text for text in said)


@pytest.mark.parametrize(
    "last", ["EOFError: marshal data too short\n", "ValueError: bad marshal data (unknown type code)\n"]
)
def test_the_doctor_knows_it(tmp_path: Path, last: str) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "identity.log").write_text(f"{{}}\nTraceback (most recent call last):\n{last}")

    found = doctor.compiled_code(load({"SERVICE_HOME": str(tmp_path)}))

    assert "identity" in found.found
    assert found.cure is not None
    assert str(tmp_path / "identity" / "compiled") in found.cure
