"""`python -m openers KIND open` and `python -m openers KIND wrap NAME`, once, for the supervisor and for `keys lock`.

`open` reads the head of a sealed file and writes the 32 bytes of its key. `wrap` reads a line with the id of a file and
the 32 bytes behind it, and writes a line with the name of the holder and what it wrapped, in base64. An operator's own
program that is used as the kind `command` is called with the same words.
"""

import sys
from base64 import b64encode
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from custody.kit.key_head import KEY_BYTES, MAX_FILE, Head, MalformedHead, read_head
from openers import no_dumps
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs

MOST_SAID = 2048
_ID_LINE = 17


def main(words: list[str]) -> int:
    """Do what was asked; the exit status says how it ended, and standard error why."""
    no_dumps.forbid()
    try:
        match words:
            case [kind, "open"]:
                sys.stdout.buffer.write(open_head(module_of(kind), kind, _head()))
            case [kind, "wrap", name]:
                file, key = _to_wrap()
                named, blob = module_of(kind).wrap(name, file, key)
                sys.stdout.write(f"{named} {b64encode(blob).decode()}\n")
            case _:
                raise BadSettings("usage: python -m openers KIND open | KIND wrap NAME")
    except NotOpened as problem:
        sys.stderr.write(problem.sentence[:MOST_SAID] + "\n")
        return problem.status
    sys.stdout.flush()
    return 0


def module_of(kind: str) -> ModuleType:
    """The module of a kind of holder."""
    if not kind.isalnum() or find_spec(f"openers.kinds.{kind}") is None:
        raise BadSettings(f"There is no kind of holder {kind!r}.")
    try:
        return import_module(f"openers.kinds.{kind}")
    except ModuleNotFoundError as missing:
        raise BadSettings(
            f"The kind {kind} needs a package that has {missing.name}: docs/master-key/{kind}.md."
        ) from None


def open_head(kind: ModuleType, name: str, head: Head) -> bytes:
    """The file's key, of the first holder of this kind that has it; else what hopes most is raised."""
    problems: list[NotOpened] = []
    together = [(holder.name, holder.blob) for holder in head.holders if holder.kind == name]
    if together and hasattr(kind, "unwrap_any"):
        # Not one after the other: who is waited for may be another's.
        key: bytes = kind.unwrap_any(together, head.file)
        return key
    for holder in head.holders:
        if holder.kind != name:
            continue
        try:
            key = kind.unwrap(holder.name, holder.blob, head.file)
            if len(key) == KEY_BYTES:
                return key
            problems.append(NotOurs(f"The holder {name} opened something that is no key of a file."))
        except NotOpened as problem:
            problems.append(problem)
    if not problems:
        raise BadSettings(f"The sealed key file has no holder of the kind {name}.")
    away = [problem for problem in problems if isinstance(problem, Away)]
    raise (away or problems)[0]


def _head() -> Head:
    try:
        return read_head(sys.stdin.buffer.read(MAX_FILE + 1))
    except MalformedHead as problem:
        raise NotOurs(problem.message) from None


def _to_wrap() -> tuple[str, bytes]:
    given = sys.stdin.buffer.read(_ID_LINE + KEY_BYTES + 1)
    if len(given) != _ID_LINE + KEY_BYTES or given[_ID_LINE - 1 : _ID_LINE] != b"\n":
        raise BadSettings("`wrap` reads the id of a file in a line, and 32 bytes.")
    return given[: _ID_LINE - 1].decode("ascii", "replace"), given[_ID_LINE:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
