"""The guides of docs/ do what they say: every block of them, pasted in order, against a real service."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyotp
import pytest

from tests.fixtures.callers import Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.pages import Reader, only, programs_of
from tests.fixtures.people import Person
from tests.fixtures.server import Service, free_ports
from tests.outside import loopback
from tests.outside.evm_node import EvmNode
from tests.outside.processes import PROJECT, die_with
from tests.outside.smtp_server import Mailbox
from tests.routes.webhooks.receivers import Receiver, running_receiver
from tests.sdk.typescript.built import folder_of

INVOICE, SLACK, COMPANY = (f"docs/{name}.md" for name in ("pay-an-invoice", "tell-slack", "set-up-a-company"))
COMPANY_ID = f"acme-{uuid.uuid4().hex[:8]}"
SUPPLIER, STRANGER = "0x" + "11" * 20, "0x" + "99" * 20

LANGUAGES = ["python", "js", "sdk", pytest.param("sdk-js", marks=pytest.mark.long)]


@pytest.fixture
def reader(tmp_path: Path, service: Service) -> Reader:
    return Reader(tmp_path, service)


def test_every_program_of_the_guides_is_run_here() -> None:
    spoken = {page: [language for language, _ in programs_of(page)] for page in (INVOICE, SLACK, COMPANY)}

    assert spoken == {INVOICE: ["sh", "sh", *["python", "js"] * 2], SLACK: ["sh", "python", "sh"], COMPANY: ["sh"] * 7}


# ---- pay-an-invoice.md


class Payer:
    """The agent of the guide, with its programs and its purse."""

    def __init__(self, reader: Reader, tenant: Tenant, node: EvmNode) -> None:
        found = programs_of(INVOICE)
        self._reader, self._node = reader, node
        [self._python, self._client], [self._script, self._module] = only(found, "python"), only(found, "js")
        rules, money = only(found, "sh")
        reader.environment |= {"key": tenant.key, "node": node.url}
        reader.paste(rules)
        if node.kind == "anvil":
            node.fund(reader.variable("wallet"))
        else:
            assert '"error"' not in reader.paste(money)
        self._given = {
            "SERVICE_AGENT_TOKEN": (reader.folder / "payer.token").read_text().strip(),
            "AGENT": "payer",
            "USDC": reader.variable("usdc"),
            "CHAIN": "31337",
        }

    def pays(self, language: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run the program in one of the two languages, or one with our client for it."""
        if language == "sdk":
            path = f"{PROJECT}:{PROJECT}/sdk/python"
            return self._reader.python(self._client, *words, **self._given, PYTHONPATH=path)
        if language == "sdk-js":
            modules = self._reader.folder / "node_modules"
            modules.mkdir(exist_ok=True)
            if not (modules / "custody-sdk").is_symlink():
                (modules / "custody-sdk").symlink_to(folder_of("newest"))
            return self._reader.node(self._module, *words, **self._given)
        if language == "python":
            return self._reader.python(self._python, *words, **self._given)
        return self._reader.node(self._script, *words, **self._given)

    def supplier_has(self) -> int:
        """Return what the token's contract says of the supplier."""
        asked = {"to": self._given["USDC"], "data": f"0x70a08231{SUPPLIER[2:]:0>64}"}
        return int(self._node.rpc("eth_call", asked, "latest"), 16) if self._node.kind != "anvil" else 0


@pytest.fixture
def payer(reader: Reader, tenant: Tenant, evm_node: EvmNode) -> Payer:
    return Payer(reader, tenant, evm_node)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_invoice_is_paid_once_however_often_it_is_sent(payer: Payer, evm_node: EvmNode, language: str) -> None:
    before = payer.supplier_has()

    ended = [payer.pays(language, SUPPLIER, "42.50", "invoice-1") for _ in range(2)]

    assert [one.stdout for one in ended] == ["confirmed\n"] * 2, ended
    assert payer.supplier_has() - before == (42_500_000 if evm_node.kind != "anvil" else 0)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("to", "amount", "why"),
    [(SUPPLIER, "200", "exceeds the limit of 100"), (STRANGER, "10", "is not in `recipientAllowlist`")],
)
def test_a_payment_outside_the_rules_is_refused_with_the_reason(
    payer: Payer, language: str, to: str, amount: str, why: str
) -> None:
    ended = payer.pays(language, to, amount, "invoice-2")

    assert ended.returncode == 1
    assert "not paid: " in ended.stderr
    assert why in ended.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_large_invoice_waits_and_ends_as_a_person_decides(payer: Payer, tenant: Tenant, language: str) -> None:
    with ThreadPoolExecutor(1) as beside:
        paying = beside.submit(payer.pays, language, SUPPLIER, "80", "invoice-3")
        [item] = eventually(lambda: tenant.ok("GET", "/approvals?status=pending"))
        tenant.ok("POST", f"/approvals/{item['id']}/deny", {"reason": "Not this one."})
        ended = paying.result()

    assert ended.stdout == f"a person decides: {item['id']}\nrejected\n", ended


# ---- tell-slack.md


class SlackGuide:
    """The receiver of the guide with its secret, and a Slack that notes what it is told."""

    def __init__(self, reader: Reader, slack: Receiver, path: str = "/200") -> None:
        found = programs_of(SLACK)
        self._reader, self._slack = reader, slack
        [self._program], [self._channel, self._commands] = only(found, "python"), only(found, "sh")
        [self._port] = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self._slack_url = slack.url(path)

    def make_channel(self, owner: Person) -> str:
        """Make the channel with the commands of the guide; what they print."""
        self._reader.environment |= {"session": owner.session["token"], "slack": self._slack_url}
        return self._reader.paste(self._channel)

    def texts(self) -> list[str]:
        """The texts that the channel wrote into the room."""
        return [one.envelope["blocks"][1]["text"]["text"] for one in list(self._slack.received)]

    def make_endpoint(self, owner: Person) -> str:
        """Make the endpoint with the commands of the guide; what they print."""
        self._reader.environment |= {"session": owner.session["token"], "receiver": self.url}
        return self._reader.paste(self._commands)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Run the receiver."""
        secret = (self._reader.folder / "webhook.secret").read_text().strip()
        given = {"WEBHOOK_SECRET": secret, "SLACK_URL": self._slack_url, "PORT": str(self._port)}
        running = subprocess.Popen(
            [sys.executable, "-c", self._program],
            env=self._reader.environment | given,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )
        try:
            eventually(self._answers)
            yield
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()

    def lines(self) -> list[str]:
        """The lines that Slack was told."""
        return [one.envelope["text"] for one in list(self._slack.received)]

    def _answers(self) -> bool:
        try:
            with loopback.client() as http:
                return http.post(self.url, content=b"{}").status_code == 401
        except httpx.TransportError:
            return False


@pytest.fixture
def guide(reader: Reader) -> Iterator[SlackGuide]:
    with running_receiver() as slack:
        yield SlackGuide(reader, slack)


def test_a_room_is_told_by_a_channel(guide: SlackGuide, as_owner: Person) -> None:
    assert guide.make_channel(as_owner) == "pending\n"

    assert eventually(guide.texts) == ["This is a test. You are told here when something waits."]


def test_slack_is_told_of_what_waits_and_of_nothing_else(guide: SlackGuide, tenant: Tenant, as_owner: Person) -> None:
    assert guide.make_endpoint(as_owner) == "true\n"
    agent = tenant.agent(rule("auto-approve-threshold", threshold="4"))

    with guide.listening():
        agent.sign(SUPPLIER, 3)
        item = agent.sign(SUPPLIER, 5).json()["data"]["approvalId"]
        lines = eventually(guide.lines)

    assert lines == [f"{agent.id} asks for evm: 5 raw units to {SUPPLIER}. Approval {item}"]


# ---- set-up-a-company.md


def test_a_company_is_set_up_from_nothing_by_the_guide(reader: Reader, mailbox: Mailbox) -> None:
    blocks = [for_one_run(program) for _, program in programs_of(COMPANY)]
    operator, begins, enrols, invites, domain, agents, checklist = blocks
    address = re.findall(r"create (\S+@\S+)", operator)[0]

    reader.paste(operator)
    seed = signed_in_by_mail(reader, begins, mailbox, address)
    codes = reader.paste(enrols, pyotp.TOTP(seed).now())
    tokens = reader.paste(invites)
    record = reader.paste(domain)
    wallet, *_, rules = reader.paste(agents).splitlines()

    assert len(json.loads(codes)) == 10
    assert len(re.findall(r"inv_|[A-Za-z0-9_-]{40,}", tokens)) >= 2
    assert "_service-sso." in record
    assert (wallet[:2], rules) == ("0x", "4")
    assert reader.paste(checklist)
    assert (reader.folder / "buyer.token").read_text().startswith("ey")


def for_one_run(program: str) -> str:
    """The program with a company of this test's own: others may have run the guide on this service."""
    return program.replace("acme", COMPANY_ID)


def signed_in_by_mail(reader: Reader, block: str, mailbox: Mailbox, address: str) -> str:
    """Paste what asks for a code, which is read from the mail that it sends; the authenticator's secret."""
    send, verify = block.split("read -r code", 1)
    before = mailbox.count(address)
    assert reader.paste(send) == "true\n"
    return reader.paste(f"read -r code{verify}", mailbox.code_for(address, before)).strip()
