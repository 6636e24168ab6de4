"""`custody doctor` says what is wrong, and how to mend it. Design 10."""

from pathlib import Path

import pytest

from custody.cli import doctor
from custody.cli.settings import load


async def test_before_the_first_start_every_complaint_has_a_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = await doctor.run(load({"SERVICE_HOME": str(tmp_path / "none")}))

    lines = capsys.readouterr().out.splitlines()
    wrong = [number for number, line in enumerate(lines) if line.startswith("WRONG")]
    assert status == 1
    assert wrong
    assert all(lines[number + 1].strip().startswith("cure: ") for number in wrong)


def test_a_master_key_that_others_can_read_is_wrong(tmp_path: Path) -> None:
    key = tmp_path / "master.key"
    key.write_text("x")
    key.chmod(0o644)

    found = doctor.master_key(load({"SERVICE_HOME": str(tmp_path)}))

    assert found.cure == f"chmod 0600 {key}"


def test_an_unknown_variable_is_pointed_out(tmp_path: Path) -> None:
    found = doctor.known_variables(load({"SERVICE_HOME": str(tmp_path), "SERVICE_API_PROT": "3200"}))

    assert "SERVICE_API_PROT" in found.found
    assert found.cure is not None
