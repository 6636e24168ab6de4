"""The result of an administrator's test, as a page for the browser in which it ended."""

import html
from collections.abc import Iterator

import msgspec

from custody.kit.answer_kinds import Page
from custody.protocol.identity.sign_on import Check, Tried

_MARKS = {True: ("yes", "passed"), False: ("no", "failed"), None: ("-", "not reached")}


def page(tried: Tried) -> Page:
    """The report."""
    title = f"{tried.provider}: the sign-in would {'work' if tried.ok else 'fail'}"
    return Page(title, "".join(_lines(tried)))


def _lines(tried: Tried) -> Iterator[str]:
    yield "<p>Nobody was signed in: this was a try.</p>"
    if tried.problem is not None:
        yield f'<p class="problem">{html.escape(tried.problem)}</p>'
    elif tried.role is not None:
        yield f"<p>This person would come in, as {html.escape(tried.role)}.</p>"
    yield '<table><thead><tr><th scope="col">Check</th><th scope="col">Result</th></tr></thead><tbody>'
    for check in tried.checks:
        yield _row(check)
    yield "</tbody></table><h2>What arrived</h2><dl>"
    for name, value in tried.arrived.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>"
    yield "</dl>"


def _row(check: Check) -> str:
    kind, said = _MARKS[check.passed]
    details = ""
    if check.passed is False and check.expected is not None:
        details = f"<br>expected {html.escape(check.expected)}<br>found {html.escape(check.found or 'nothing')}"
    return f'<tr class="{kind}"><td>{html.escape(check.title)}{details}</td><td>{said}</td></tr>'
