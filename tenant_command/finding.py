"""Finding a thing by what people call it."""

from typing import Any

from console.wire.failures import Absent, Failure
from tenant_command.call import Call
from words.texts.plain import plain


async def find(call: Call, path: str, given: str, *, by: str, what: str, word: str) -> dict[str, Any]:
    """Find the one of a list that has this id, or else this `by`; raises Absent, or Failure for several.

    `word` is that of the command whose `list` shows them.
    """
    found = await look(call, path, given, by=by, what=what)
    if found is None:
        code = f"{what.replace(' ', '_')}_absent"
        raise Absent(f"There is no {what} {given!r}: see `custody {word} list`.", status=404, code=code, data={})
    return found


async def look(call: Call, path: str, given: str, *, by: str, what: str) -> dict[str, Any] | None:
    """Find the same, or none."""
    everything: list[dict[str, Any]] = await call.every(path)
    # Texts come harmless unless JSON is printed, so what was typed is compared as both.
    same = (given, plain(given))
    found = [one for one in everything if one.get("id") == given] or [one for one in everything if one.get(by) in same]
    if len(found) > 1:
        raise Failure(f"There are {len(found)} of the {what}s {given!r}: say the id of the one that you mean.")
    return found[0] if found else None
