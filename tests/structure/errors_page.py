"""Writes the page of error codes from what the routes declare: `make openapi`."""

from pathlib import Path

from api.http.contract.codes import meanings
from api.routes import endpoints

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
_HEAD = """# Error codes

Every refusal is `{"ok": false, "error": "<a sentence for people>", "data": {"code": "<for programs>"}}`; some have more
fields in `data`. Sentences may change and name the value at fault; codes do not change. New codes may be added: treat
one that you do not know by its status. Which route answers which is in the contract (`GET /docs`), how to retry in
[api.md](api.md). Written by `make openapi`.

| Code | Status | Cause, and what to do |
|---|---|---|
"""


def page() -> str:
    """The page."""
    found = meanings(endpoints())
    rows = (
        f"| `{code}` | {', '.join(map(str, sorted(statuses)))} | {meaning.replace('|', chr(92) + '|')} |\n"
        for code, (statuses, meaning) in sorted(found.items())
    )
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
