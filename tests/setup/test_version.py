"""Version and commit, as the command line and the code know them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from custody.version import VERSION
from tests.outside.processes import PROJECT

ASK = "from custody.version import commit; print(commit())"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with the module alone, of which git knows nothing."""
    (tmp_path / "custody").mkdir()
    shutil.copy(PROJECT / "custody/version.py", tmp_path / "custody")
    (tmp_path / "custody/__init__.py").touch()
    return tmp_path


def ask(tree: Path) -> str:
    return subprocess.run(
        [sys.executable, "-S", "-c", ASK], cwd=tree, capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()


def test_the_command_names_version_and_commit() -> None:
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "ops", "--version"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False)

    assert ended.stdout == f"custody {VERSION}, commit {head.stdout.strip() or 'unknown'}\n"


def test_copied_files_have_no_commit(tree: Path) -> None:
    assert ask(tree) == "unknown"


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": COMMIT},
        {"HEAD": "ref: refs/heads/main", "refs/heads/main": COMMIT},
        {
            "HEAD": "ref: refs/heads/main",
            "packed-refs": f"# pack-refs\n{OTHER} refs/heads/other\n{COMMIT} refs/heads/main\n",
        },
    ],
    ids=["detached", "branch", "packed"],
)
def test_a_checkout_says_its_commit(tree: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (tree / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / ".git" / name).write_text(f"{content}\n")

    assert ask(tree) == COMMIT


def test_a_worktree_says_its_own_commit(tree: Path) -> None:
    place = tree / "repository/worktrees/here"
    place.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {place}\n")
    (place / "HEAD").write_text("ref: refs/heads/here\n")
    (place / "commondir").write_text("../..\n")
    (tree / "repository/refs/heads").mkdir(parents=True)
    (tree / "repository/refs/heads/here").write_text(f"{COMMIT}\n")

    assert ask(tree) == COMMIT


def test_a_built_in_commit_goes_before_the_checkout(tree: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".git/HEAD").write_text(f"{OTHER}\n")
    (tree / "custody/commit").write_text(f"{COMMIT}\n")

    assert ask(tree) == COMMIT


def test_something_else_is_no_commit(tree: Path) -> None:
    (tree / "custody/commit").write_text("<script>\n")

    assert ask(tree) == "unknown"
