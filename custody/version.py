"""The version of this package, the same as in pyproject.toml, and the commit that it was made from."""

import re
from functools import cache
from pathlib import Path

VERSION = "1.0.0"
_ROOT = Path(__file__).parents[1]
# What builds an image or a wheel writes the commit here; in a checkout there is no such file.
_BUILT_IN = Path(__file__).with_name("commit")
_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@cache
def commit() -> str:
    """The commit of this code: as it was built in, else as the checkout says, else `unknown`. Runs no program."""
    for look in (_BUILT_IN.read_text, _checked_out):
        try:
            found = look().strip()
        except (OSError, UnicodeDecodeError):
            continue  # another user's checkout, or none
        if _NAME.fullmatch(found):
            return found
    return "unknown"


def _checked_out() -> str:
    git = _ROOT / ".git"
    if git.is_file():  # of a worktree, it names its place in the repository
        git = _ROOT / git.read_text().removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
    if (common / name).exists():
        return (common / name).read_text()
    packed = (line.split(" ", 1) for line in (common / "packed-refs").read_text().splitlines())
    return next((parts[0] for parts in packed if parts[1:] == [name]), "")
