"""Text that agents write is shown escaped on every screen, breaks no line, and never reaches the terminal as it is."""

import os
import pty
import re
import select
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.console.orders import TOKEN, US
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.consoles import NARROW, Driven, driving
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

# What the API takes as a name: everything but the control characters of ASCII.
# Each with what must be seen of it instead, also where a row has little room.
NAMES = {
    "controls": ("\x9b2J\u202e01\u2066[red]x[/]\x9d52;c;eHg=\x9c\u200f [@click=app.quit]q[/]", "\\x9b2J<U+2"),
    "long": ("W" * 200, "WWWWWWWWWW"),
    "pictures": (
        "🇩🇪👨\u200d👩\u200d👧❤\ufe0f👍🏽\u3164\u2800\u115f\u00a0\U000e0041 שלום 1000 Z" + "\u0336\u0334" * 60,
        "<U+1F1E9",
    ),
}
# What a terminal may be told: colours and styles, and where the cursor goes. Nothing that an agent could have sent.
_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[[0-9;]*[HABCDfK]")
# What takes effect in a terminal, or turns its lines around.
_OBEYED = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0f\U000e0000-\U000e007f\u0590-\u08ff]"
)
EVIL = "\x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil.example\x07x\u202e0001 \r\n[@click=app.quit]q[/]\x00"


def hostile_payer(tenant: Tenant, name: str) -> Agent:
    """An agent with a bad name, of whom every order waits."""
    made = tenant.ok("POST", "/agents", {"id": "payer", "name": name})
    tenant.ok("PUT", "/agents/payer/policies", [rule("auto-approve-threshold", threshold="0")])
    agent = tenant.as_agent(made)
    assert agent.sign(value=5, referenceId="[red]ref[/]").status_code == 202
    return agent


async def in_the_queue(console: Driven) -> None:
    await console.until(lambda: console.app.current_mode == "approvals", "the queue")
    await console.sees("What it does")


async def in_the_dialog(console: Driven) -> None:
    await console.press("a")
    await console.sees("(y)")


async def on_the_agents(console: Driven) -> None:
    await console.until(lambda: console.app.current_mode == "approvals", "the queue")
    await console.press("escape", "2")
    await console.sees("payer")


async def on_the_transactions(console: Driven) -> None:
    await console.until(lambda: console.app.current_mode is not None and console.app.person is not None, "the person")
    await console.press("3")
    await console.sees("newest first", "Details")


def assert_whole(console: Driven) -> None:
    """Every line is as wide as the screen, and what goes to the terminal is ours alone."""
    compositor = console.app.screen._compositor
    width = console.app.size.width
    assert {cell_len(strip.text) for strip in compositor.render_strips()} == {width}
    sent = compositor.render_full_update().render_segments(console.app.console)
    assert not _OBEYED.search(_OURS.sub("", sent).replace("\r", ""))


@pytest.mark.parametrize("kind", list(NAMES))
async def test_a_name_is_escaped_and_breaks_no_line_on_any_screen(
    service: Service, tenant: Tenant, folder: Path, kind: str
) -> None:
    name, seen = NAMES[kind]
    hostile_payer(tenant, name)

    async with driving(service.url, folder, key=tenant.key) as console:
        for arrive in (in_the_queue, in_the_dialog, on_the_agents, on_the_transactions):
            await arrive(console)
            await console.sees(seen)
            assert_whole(console)


async def test_a_narrow_terminal_is_not_broken_either(service: Service, tenant: Tenant, folder: Path) -> None:
    hostile_payer(tenant, NAMES["pictures"][0])

    async with driving(service.url, folder, key=tenant.key, size=NARROW) as console:
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")
        await console.press("3")
        await console.sees("newest first", "5 wei")
        assert_whole(console)
        await console.press("enter")
        await console.sees("What it does", "<U+1F1E9><U+1F1EA>👨<U+200D>")

        assert_whole(console)


def evil_document(**more: Any) -> dict[str, Any]:
    """Typed data whose words are an attack."""
    return {
        "domain": {"name": EVIL, "chainId": 31337, "verifyingContract": TOKEN},
        "types": {"Order": [{"name": "text", "type": "string"}, {"name": "to", "type": "address"}]},
        "primaryType": "Order",
        "value": {"text": EVIL + "A" * 10_000, "to": US},
        **more,
    }


async def test_a_document_is_shown_escaped_and_clipped(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = hostile_payer(tenant, "Payer")
    answer = agent.post("/vault/payer/sign-typed-data", json=evil_document())
    assert answer.status_code == 202, answer.text

    async with driving(service.url, folder, key=tenant.key, size=(140, 70)) as console:
        await on_the_transactions(console)

        await console.sees(
            "Typed data of an unknown kind", "\\x1b[2J\\x1b]52;c;ZXZpbA==\\x07", "<U+202E>0001", "characters)"
        )
        assert_whole(console)


async def test_a_reason_is_shown_escaped(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = hostile_payer(tenant, "Payer")
    tenant.ok("POST", "/agents/payer/freeze", {"reason": "\x9b2J [red]\u202egone"})
    assert agent.id == "payer"

    async with driving(service.url, folder, key=tenant.key) as console:
        await on_the_agents(console)

        await console.sees("\\x9b2J [red]<U+202E>gone")
        assert_whole(console)


@pytest.mark.long
def test_a_real_terminal_receives_no_control_sequence_of_others(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = hostile_payer(tenant, "".join(name for name, _ in NAMES.values())[:200])
    assert agent.post("/vault/payer/sign-typed-data", json=evil_document()).status_code == 202
    folder.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT),
        "TERM": "xterm-256color",
        "HOME": str(folder),
        "SERVICE_URL": service.url,
        "SERVICE_KEY": tenant.key,
        "XDG_CONFIG_HOME": str(folder),
        "COLUMNS": "140",
        "LINES": "50",
    }

    sent = in_a_terminal(
        environment, [("What it does", b"3"), ("newest first", b""), ("Details", b"\r"), ("ZXZp", b"q")]
    )

    # Textual's own words to a terminal: modes, colours, the cursor, its title, and questions what it can do.
    ours = re.sub(
        r"\x1b\[[?>=<]?[0-9;]*\$?[a-zA-Z]|\x1b\](?:0|2|22);[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[=>78]|\x1b\([B0]",
        "",
        sent,
    )
    assert "ZXZpbA==" in sent
    assert "\x1b]52" not in sent
    assert "\x1b]8;" not in sent
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", ours)


def in_a_terminal(environment: dict[str, str], steps: list[tuple[str, bytes]]) -> str:
    """Run the console in a pseudo-terminal; press keys as words appear; all that was written to it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-P", "-m", "console"], environment)
    written, deadline = b"", time.monotonic() + 60
    try:
        for words, keys in steps:
            while words not in _text(written):
                assert time.monotonic() < deadline, _text(written)[-3000:]
                if select.select([terminal], [], [], 0.2)[0]:
                    written += os.read(terminal, 65536)
            os.write(terminal, keys)
        while select.select([terminal], [], [], 60)[0]:
            try:
                written += os.read(terminal, 65536)
            except OSError:
                break
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return written.decode()


def _text(written: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written.decode(errors="replace"))
