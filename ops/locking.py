"""`custody keys lock`, `holders` and `unlock-file`: a program of the openers does it, at this terminal.

The keys are never in this process. What it needs of holders, their openers get from the environment as at a start.
"""

import argparse
import os
import subprocess
import sys

from ops import checkout, places
from ops.holders import SOURCE, kinds_of
from ops.programs import Programs
from ops.settings import Settings

ACTS = ("lock", "holders", "unlock-file")


def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do it where nothing runs on the file; holders may change at any time."""
    kinds_of(settings.environment)
    places.insist_on_owner(settings.home)
    home = places.open_home(settings.home, settings.uid_base)
    lock = places.Lock(home.file("lock"))
    if chosen.act != "holders" and not lock.take():
        print(f"custody: custody runs in {home.path}; stop it first", file=sys.stderr)
        return 1
    try:
        file = Programs(settings, home).key_file("signer")["SERVICE_MASTER_KEY_FILE"]
        words = ["--file", str(file), "--source", settings.environment.get(SOURCE, ""), chosen.act, *_options(chosen)]
        return call(settings, words)
    finally:
        lock.release()


def call(settings: Settings, words: list[str]) -> int:
    """Run the program with these words, and give it the terminal."""
    return subprocess.run(_command(words), env=_environment(settings), check=False).returncode  # noqa: S603 - ours


def check(settings: Settings) -> str | None:
    """Ask each holder that needs no person; None where all open the file, else what they say."""
    words = ["--file", str(settings.master_key_file), "check"]
    ended = subprocess.run(  # noqa: S603 - our own program
        _command(words),
        env=_environment(settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return None if ended.returncode == 0 else "; ".join(ended.stderr.removeprefix("custody: ").splitlines())


def _command(words: list[str]) -> list[str]:
    program = checkout.OPENERS_PYTHON if checkout.OPENERS_PYTHON.exists() else sys.executable
    return [str(program), "-P", "-m", "openers.locking", *words]


def _environment(settings: Settings) -> dict[str, str]:
    return {**settings.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _options(chosen: argparse.Namespace) -> list[str]:
    options = []
    for name in ("to", "add", "remove"):
        for word in getattr(chosen, name, None) or ():
            options += [f"--{name}", word]
    for name in ("no_recovery", "refresh", "new_file_key"):
        if getattr(chosen, name, False):
            options.append(f"--{name.replace('_', '-')}")
    return options
