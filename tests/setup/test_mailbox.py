"""In development, mail is shown to who started Custody, and to nobody else."""

import asyncio
import smtplib
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path

import httpx
import pytest

from custody.notifications.mail import Mail
from ops import up
from ops.mailbox import Letter, Mailbox, as_text
from ops.settings import load
from tests.fixtures.eventually import soon


@pytest.fixture
async def arrivals() -> list[Letter]:
    return []


@pytest.fixture
async def mailbox(arrivals: list[Letter]) -> AsyncIterator[Mailbox]:
    started = Mailbox(arrivals.append)
    await started.start()
    yield started
    await started.stop()


async def get(url: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        return await client.get(url, headers=headers)


async def send(mailbox: Mailbox, to: str, text: str, subject: str = "Hello") -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a@example.com", to, subject
    mail.set_content(text)

    def send() -> None:
        host, _, port = mailbox.smtp_url.removeprefix("smtp://").partition(":")
        with smtplib.SMTP(host, int(port), timeout=30) as server:
            server.send_message(mail, to_addrs=[to])

    await asyncio.to_thread(send)


async def test_a_code_arrives_on_terminal_and_page(mailbox: Mailbox, arrivals: list[Letter]) -> None:
    mail = Mail(mailbox.smtp_url, "http://localhost:3200")
    mail.send_code("ada@example.com", "123456")
    await soon(lambda: arrivals)
    await mail.close()

    assert "mail to ada@example.com: 123456 is your sign-in code" in as_text(arrivals[0])
    plain, shown = await get(mailbox.page_url), await get(mailbox.page_url, accept="text/html")
    assert "\n    123456\n" in plain.text
    assert "    123456\n" in shown.text
    assert shown.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert shown.headers["Cache-Control"] == "no-store"


async def test_a_dot_alone_and_long_letters_come_whole(mailbox: Mailbox, arrivals: list[Letter]) -> None:
    text = ".\n..\nlast " + "word " * 500 + "\n"
    await send(mailbox, "ada@example.com", text)

    assert arrivals[0].text == text


async def test_strangers_do_not_read_it(mailbox: Mailbox) -> None:
    await send(mailbox, "ada@example.com", "123456")
    base, _, secret = mailbox.page_url.rpartition("/")

    assert base.startswith("http://127.0.0.1:")
    assert len(secret) >= 32
    for url, headers in (
        (base, {}),
        (f"{base}/", {}),
        (f"{base}/{secret[:-1]}", {}),
        (f"{base}/{secret}/", {}),
        (mailbox.page_url, {"host": "rebound.example.com"}),
        (mailbox.page_url, {"host": ""}),
    ):
        answer = await get(url, **headers)
        assert (answer.status_code, answer.text) == (404, "There is nothing here.\n")
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        assert (await client.post(mailbox.page_url)).status_code == 404


async def test_a_letter_of_anybody_speaks_to_no_terminal_and_no_browser(
    mailbox: Mailbox, arrivals: list[Letter]
) -> None:
    await send(mailbox, "ada@example.com", "\x1b[2J\u202eevil <script>alert(1)</script>\n", "\x1b]0;t\x07 <b>")

    assert "\x1b" not in as_text(arrivals[0])
    assert "\u202e" not in as_text(arrivals[0])
    shown = await get(mailbox.page_url, accept="text/html")
    assert "<script" not in shown.text
    assert "<b>" not in shown.text


async def test_a_letter_that_does_not_end_is_not_kept(mailbox: Mailbox, arrivals: list[Letter]) -> None:
    with pytest.raises((smtplib.SMTPException, OSError)):
        await send(mailbox, "ada@example.com", "word\n" * 100_000)
    await send(mailbox, "ada@example.com", "the next one")

    assert [letter.text for letter in arrivals] == ["the next one\n"]


@pytest.mark.parametrize("more", [{"SERVICE_ENV": "production"}, {"SERVICE_SMTP_URL": "smtp://mail.example.com"}])
async def test_a_mailbox_is_for_development_without_a_mail_server(tmp_path: Path, more: dict[str, str]) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path), **more})

    async with up.mail(settings) as none:
        assert none is None
    assert settings.environment.get("SERVICE_SMTP_URL") == more.get("SERVICE_SMTP_URL")


async def test_a_file_gets_neither_code_nor_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with up.mail(load({"SERVICE_HOME": str(tmp_path)})) as mailbox:
        assert mailbox is not None
        await send(mailbox, "ada@example.com", "    123456\n", "123456 is your sign-in code")

        said = capsys.readouterr().err
        assert "mailbox.url" in said
        assert "123456" not in said
        assert mailbox.page_url not in said
    assert not (tmp_path / "mailbox.url").exists()
