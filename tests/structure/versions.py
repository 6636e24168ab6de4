"""Moves the one version that the service, its contract and its clients have: `make version TO=1.2.3`.

What is written here is where a person or a generator wrote it; `make openapi` brings it into what follows.
"""

import re
import sys
from typing import Final

from tests.outside.processes import PROJECT

FORM: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
# Of each file the places, the version itself as `VERSION`.
PLACES: Final = {
    "pyproject.toml": ('\nversion = "VERSION"\n',),
    "custody/version.py": ('\nVERSION = "VERSION"\n',),
    "mcp_server/version.py": ('\nVERSION: Final = "VERSION"\n',),
    "sdk/python/pyproject.toml": ('\nversion = "VERSION" ',),
    "sdk/python/custody_sdk/client.py": ('\nVERSION: Final = "VERSION"\n',),
    "sdk/typescript/package.json": ('\n  "version": "VERSION",\n',),
    "sdk/typescript/package-lock.json": (
        '\n  "version": "VERSION",\n',
        '\n      "name": "custody-sdk",\n      "version": "VERSION",\n',
    ),
    "sdk/typescript/src/client.ts": ('\nexport const VERSION = "VERSION";\n',),
    "api/http/contract/examples.json": ('"status":"ok","version":"VERSION",',),
}
# Made of the service's by `make openapi`.
MADE: Final = ("openapi.json", "sdk/agent.json")


def read(file: str) -> set[str]:
    """The versions in the places of a file; a place that is not there is the version `none`."""
    text = (PROJECT / file).read_text()
    wanted = [pattern_of(place) for place in PLACES[file]]
    return {hit[2] if (hit := re.search(place, text)) else "none" for place in wanted}


def pattern_of(place: str) -> str:
    """The pattern of a place, in three groups, of which the second is the version."""
    before, _, after = place.rpartition("VERSION")
    return f"({re.escape(before)})({FORM.pattern})({re.escape(after)})"


def change(file: str, version: str) -> str:
    """Return the text of a file with another version."""
    text = (PROJECT / file).read_text()
    for place in PLACES[file]:
        text, count = re.subn(pattern_of(place), rf"\g<1>{version}\g<6>", text, count=1)
        if count != 1:
            raise SystemExit(f"{file} has no place like {place!r}")
    return text


def main() -> None:
    """Write it everywhere."""
    version = sys.argv[1] if len(sys.argv) == 2 else ""
    if not FORM.fullmatch(version):
        raise SystemExit("say which: make version TO=1.2.3")
    texts = {file: change(file, version) for file in PLACES}
    for file, text in texts.items():
        (PROJECT / file).write_text(text)


if __name__ == "__main__":
    main()
