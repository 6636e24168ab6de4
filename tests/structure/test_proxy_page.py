"""docs/proxy.md says what the proxy does: its statuses are held against the code."""

import re
from pathlib import Path

from proxy_addon import refuse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/proxy.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_every_refusal_that_is_used_stands_on_the_page_with_its_status() -> None:
    listed = {
        (status, code)
        for statuses, codes in map(tuple, rows("Statuses"))
        for status in re.findall(r"\d{3}", statuses)
        for code in re.findall(r"`([a-z_]+)`", codes)
    }
    code = "".join(file.read_text() for file in (ROOT / "proxy_addon").rglob("*.py"))
    used = {
        (str(refusal.status), refusal.code)
        for name, refusal in vars(refuse).items()
        if isinstance(refusal, refuse.Refusal) and f"refuse.{name}" in code
    }

    # Where the body alone is ours the status is the upstream's.
    of_any = {
        code
        for statuses, codes in map(tuple, rows("Statuses"))
        if "X-Service-Body" in statuses
        for code in re.findall(r"`([a-z_]+)`", codes)
    }

    assert len(used) > 12
    assert {(status, code) for status, code in used - listed if code not in of_any} == set()
