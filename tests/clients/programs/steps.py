"""The things that every client's program has: address and key as its user sets them, and the steps it is asked for."""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The address of the API as this client is to know it, and that of the same API whose route lets parts through.
BASE, PARTS = os.environ.get("BASE", ""), os.environ.get("PARTS", "")
KEY = os.environ.get("KEY", "")
WORDS = "one two three"
FILE = Path("file")
UPLOADED = hashlib.sha256(b"upload").digest() * (5 * 2**20 // 32)


def size_and_digest(content: bytes) -> list[Any]:
    """Size and SHA-256, which tell one file from another."""
    return [len(content), hashlib.sha256(content).hexdigest()]


def of_file() -> list[Any]:
    """The same of what the client wrote to FILE."""
    return size_and_digest(FILE.read_bytes())


def run(steps: dict[str, Callable[[], Any]]) -> None:
    """Take the steps that the command line names, and print what came of each as one line of JSON."""
    for name in sys.argv[1:]:
        FILE.unlink(missing_ok=True)
        try:
            got = steps[name]()
        except Exception as problem:
            got = {"error": type(problem).__name__, "said": f"{problem}"[:500]}
        print(json.dumps({"step": name, "got": got}), flush=True)
