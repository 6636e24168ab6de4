"""`custody console` from a shell: what it takes, what it says when it cannot, and with which status."""

import os
import pty
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ops.greeting import console, greeting
from ops.settings import load
from tests.outside.processes import PROJECT

CUSTODY = PROJECT / ".venv/bin/custody"


def run(folder: Path, *arguments: str, terminal: int | None = None, **environment: str) -> tuple[int, str, str]:
    """Status, output and complaints of `custody`, started in an empty folder without any file of Custody."""
    given = subprocess.DEVNULL if terminal is None else terminal
    ended = subprocess.run(
        [CUSTODY, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        stdin=given,
        stdout=subprocess.PIPE if terminal is None else terminal,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    return ended.returncode, ended.stdout or "", " ".join(ended.stderr.split())


def test_help_names_every_option_and_leaves_nothing_behind(tmp_path: Path) -> None:
    status, said, complaints = run(tmp_path, "console", "--help")

    assert (status, complaints) == (0, "")
    assert said.startswith("usage: custody console ")
    assert all(option in said for option in ("--profile", "--url", "--read-only", "--theme", "--web", "--port"))
    assert list(tmp_path.iterdir()) == []


def test_the_command_lists_it(tmp_path: Path) -> None:
    status, said, _ = run(tmp_path, "--help")

    assert status == 0
    assert "console open the approvals console" in " ".join(said.split())


def test_into_a_pipe_nothing_is_drawn(tmp_path: Path) -> None:
    status, said, complaints = run(tmp_path, "console")

    assert (status, said) == (2, "")
    assert complaints == (
        "custody console: standard output is not a terminal; run it in a terminal, or in a browser with --web"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_draw_is_told_so(tmp_path: Path, term: str) -> None:
    ours, theirs = pty.openpty()
    status, _, complaints = run(tmp_path, "console", terminal=theirs, TERM=term)
    os.close(theirs)
    os.close(ours)

    assert status == 2
    assert "this terminal cannot draw (TERM)" in complaints


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--profile", "prod"], "no profile 'prod'"),
        (["--url", "http://custody.example"], "use https"),
        (["--url", "nonsense"], "is not a service URL"),
        (["--web", "--port", "99999"], "choose another with --port"),
        (["--theme", "pink"], "invalid choice: 'pink'"),
        (["--key", "custody_secret"], "unrecognized arguments: --key"),
    ],
    ids=["profile", "plain-http", "address", "port", "theme", "key"],
)
def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    status, said, complaints = run(tmp_path, "console", *arguments)

    assert (status, said) == (2, "")
    assert sentence in complaints
    assert "Traceback" not in complaints


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    key_file = tmp_path / "tenant.key"
    key_file.write_text("a-key-of-a-tenant-that-is-long-enough")
    key_file.chmod(0o640)

    status, _, complaints = run(tmp_path, "console", SERVICE_KEY_FILE=str(key_file))

    assert status == 2
    assert f"chmod 600 {key_file}" in complaints
    assert "a-key-of-a-tenant" not in complaints


def test_an_installation_without_it_says_so(tmp_path: Path) -> None:
    for package in ("custody", "ops"):
        shutil.copytree(PROJECT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    ended = subprocess.run(
        [sys.executable, "-P", "-S", "-m", "ops", "console"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{_packages()}", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )

    assert ended.returncode == 2
    assert ended.stderr.startswith("custody: this command is not part of this installation")


def _packages() -> str:
    """Find the folder of libraries; their `.pth` files, one of which leads to us, are not read without `site`."""
    return str(Path(pytest.__file__).parents[1])


def test_make_runs_it() -> None:
    asked = subprocess.run(
        ["make", "--no-print-directory", "-n", "console"], cwd=PROJECT, capture_output=True, text=True, check=True
    )

    assert asked.stdout.splitlines()[-1] == "exec .venv/bin/custody console"


def test_the_greeting_gives_the_command_that_works_there(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path / "state"), "SERVICE_API_PORT": "4200"})
    before = console(settings, settings.api_url)
    key_file = tmp_path / "state/demo/tenant.key"
    key_file.parent.mkdir(parents=True)
    key_file.touch(0o600)

    after = console(settings, settings.api_url)
    usual = console(load({"SERVICE_HOME": str(tmp_path / "state")}), "http://127.0.0.1:3200")

    assert shlex.split(before) == ["SERVICE_URL=http://127.0.0.1:4200", shlex.split(before)[1], "console"]
    assert shlex.split(after)[0] == f"SERVICE_KEY_FILE={key_file}"
    assert shlex.split(usual) == [f"SERVICE_KEY_FILE={key_file}", shlex.split(usual)[1], "console"]
    assert f"\n  {after}\n" in greeting(settings, None, first=True)


def test_the_greeting_says_what_the_local_chain_forgets(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path / "state")})

    assert "`dev_fund`, in docs/api.md, Play money" in greeting(settings, "http://127.0.0.1:4000", first=False)
    assert "dev_fund" not in greeting(settings, None, first=False)


def test_the_greeting_leads_to_the_page_that_people_read(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path / "state"), "SERVICE_API_PORT": "4200"})

    assert "http://127.0.0.1:4200/docs to read" in greeting(settings, None, first=False)
