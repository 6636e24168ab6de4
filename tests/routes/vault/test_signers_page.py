"""The programs of docs/signers.md and what `custody sign-request` prints, run against the service as they stand."""

import os
import re
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signers import path_of, signer_body
from tests.outside.processes import PROJECT

BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (PROJECT / "docs/signers.md").read_text(), re.DOTALL)
RUN = {"python": [str(PROJECT / ".venv/bin/python"), "-c"], "js": ["node", "-e"], "sh": ["sh", "-eu", "-c"]}


class Shell:
    """A folder and the variables that the page assumes: an admin's session, an agent with its token."""

    def __init__(self, folder: Path, service: Service, tenant: Tenant, agent: Agent, admin: Person) -> None:
        self.folder, self.agent, self.admin = folder, agent, admin
        self.environment = {
            "PATH": f"{PROJECT}/.venv/bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "SERVICE_URL": service.url,
            "TENANT": tenant.id,
            "AGENT": agent.id,
            "SERVICE_AGENT_TOKEN": agent.headers["Authorization"].removeprefix("Bearer "),
            "SESSION": admin.session["token"],
        }

    def register(self, **fields: Any) -> str:
        """A signer of the agent; its id."""
        return self.admin.ok("POST", path_of(self.agent, "signers"), signer_body(**fields))["id"]

    def run(self, language: str, program: str) -> dict[str, Any]:
        """Run a program, and return its last output, in JSON."""
        ended = subprocess.run(
            [*RUN[language], program],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return msgspec.json.decode(ended.stdout) if ended.stdout else {}


@pytest.fixture
def shell(tmp_path, service, tenant):
    with closing(member(service, tenant, "admin", mfa=True)) as admin:
        yield Shell(tmp_path, service, tenant, tenant.agent(), admin)


def test_every_block_of_the_page_is_run_here():
    assert [language for language, _ in BLOCKS] == ["sh", "sh", "python", "js", "sh"]


def test_the_page_registers_three_keys_and_transfers_with_two(shell):
    shell.run(*BLOCKS[0])

    answer = shell.run(*BLOCKS[1])

    assert answer["ok"], answer
    assert answer["data"]["status"] == "signed"
    ids = [(shell.folder / f"{name}.id").read_text().strip() for name in ("billing", "audit")]
    assert all(re.fullmatch(r"[0-9a-f-]{36}", one) for one in ids)


def test_one_of_the_three_is_not_enough(shell):
    shell.run(*BLOCKS[0])
    language, program = BLOCKS[1]

    answer = shell.run(language, program.replace('--signer "$(cat audit.id)=audit.pem" ', ""))

    assert (answer["ok"], answer["data"]["code"]) == (False, "quorum_not_met")


def test_the_programs_of_the_page_authorise_a_transfer_each(shell):
    public = shell.run("sh", 'jq -n --arg key "$(custody sign-request new-key signer.pem)" "{key: \\$key}"')["key"]
    shell.environment["SIGNER"] = shell.register(publicKey=public, keyType="p256", permissions=["transfer"])

    answers = [shell.run(*block) for block in BLOCKS[2:]]

    assert [answer["data"]["status"] for answer in answers] == ["signed"] * 3
    assert len({answer["data"]["txId"] for answer in answers}) == 3


def test_a_curl_command_that_is_printed_runs_as_it_is(shell):
    shell.run(*BLOCKS[0])
    words = '--tenant "$TENANT" --quorum "$(cat quorum.id)" --signer "$(cat stock.id)=stock.pem" '
    words += '--signer "$(cat audit.id)=audit.pem" --body - --output curl'
    order = '{"to": "0x1111111111111111111111111111111111111111", "value": "7", "broadcast": false}'

    answer = shell.run(
        "sh",
        f"""printf '{order}' |
        custody sign-request POST "$SERVICE_URL/vault/$AGENT/actions/transfer" {words} > command.sh; sh command.sh""",
    )

    assert answer["data"]["value"] == "7"


def test_a_secret_signs_too_and_only_for_its_own_body(shell):
    signer = shell.admin.ok(
        "POST", path_of(shell.agent, "signers"), signer_body(issueCredential=True, permissions=["sign_transaction"])
    )
    (shell.folder / "secret").touch(0o600)
    (shell.folder / "secret").write_text(signer["credentialSecret"] + "\n")
    (shell.folder / "order.json").write_text(
        '{"to":"0x1111111111111111111111111111111111111111","value":"1","broadcast":false}'
    )
    words = f'--tenant "$TENANT" --signer {signer["id"]} --secret-file secret --body order.json > headers.txt'
    send = """curl -sS "$SERVICE_URL$path" -H "Authorization: Bearer $SERVICE_AGENT_TOKEN" -H @headers.txt \\
        -H 'Content-Type: application/json' --data-binary"""

    sign = f'path=/vault/$AGENT/sign; custody sign-request POST "$path" {words}; {send}'
    other = shell.run(
        "sh", f'{sign} \'{{"to":"0x2222222222222222222222222222222222222222","value":"1","broadcast":false}}\''
    )
    same = shell.run("sh", f"{sign} @order.json")

    assert other["data"]["code"] == "signature_mismatch"
    assert same["data"]["signedTransaction"].startswith("0x02")
