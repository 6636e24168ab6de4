"""The programs of docs/wallets.md and `custody import-key`, run as they stand, in Python and in Node."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from tests.fixtures.callers import Agent
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT
from tests.routes.vault.test_imports import evm_key

BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (PROJECT / "docs/wallets.md").read_text(), re.DOTALL)
PYTHON, SCRIPT = (program for _, program in BLOCKS)


def test_every_block_of_the_page_is_run_here() -> None:
    assert [language for language, _ in BLOCKS] == ["python", "js"]


def ran(command: list[str], **environment: str) -> str:
    given = {"PATH": os.environ["PATH"], **environment}
    ended = subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_python_client_imports_a_key(service: Service, as_owner: Person, agent: Agent) -> None:
    key, address = evm_key()

    said = ran(
        [sys.executable, "-c", PYTHON],
        SERVICE_URL=service.url,
        SESSION=as_owner.session["token"],
        AGENT=agent.id,
        PRIVATE_KEY=key,
    )

    assert json.loads(said)["walletAddress"] == address


def call_of(service: Service, person: Person, agent: Agent, key: str) -> str:
    given = {
        "url": service.url, "token": person.session["token"], "agent": agent.id, "chain": "evm", "privateKey": key,
    }  # fmt: skip
    return f"importKey({json.dumps(given)})"


def test_the_webcrypto_client_imports_a_key_in_node(service: Service, as_owner: Person, agent: Agent) -> None:
    key, address = evm_key()
    call = call_of(service, as_owner, agent, key)

    said = ran(["node", "-e", f"{SCRIPT}\n{call}.then((data) => console.log(JSON.stringify(data)))"])

    assert json.loads(said)["walletAddress"] == address


def run_prompt(service: Service, agent: Agent, key: str, *words: str, **environment: str) -> tuple[int, str]:
    """Run the command on a terminal of its own, and type a key."""
    terminal, ours = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "ops", "import-key", agent.id, "--chain", "evm", "--service", service.url, *words],
        stdin=ours,
        stdout=ours,
        stderr=ours,
        start_new_session=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **environment},
    )
    os.close(ours)
    said = b""
    try:
        while True:
            chunk = os.read(terminal, 4096)
            said += chunk
            if b"not shown" in chunk:
                os.write(terminal, key.encode() + b"\n")
    except OSError:
        # What Linux says when the other end is closed.
        pass
    os.close(terminal)
    return started.wait(timeout=90), said.decode()


def test_the_command_imports_a_key_that_it_does_not_show(
    service: Service, as_owner: Person, agent: Agent, tmp_path: Path
) -> None:
    key, address = evm_key()
    jwks = tmp_path / "jwks.json"
    jwks.write_bytes(as_owner.get("/.well-known/jwks.json").content)

    status, said = run_prompt(service, agent, key, "--jwks", str(jwks), SERVICE_SESSION=as_owner.session["token"])

    assert status == 0, said
    assert address in said
    assert key not in said


def test_the_command_seals_nothing_to_a_key_that_is_not_attested(
    service: Service, as_owner: Person, agent: Agent, tmp_path: Path
) -> None:
    jwks = tmp_path / "jwks.json"
    keys = as_owner.get("/.well-known/jwks.json").json()
    for key in keys["keys"]:
        key["x"] = "A" * 43
    jwks.write_text(json.dumps(keys))

    status, said = run_prompt(service, agent, "", "--jwks", str(jwks), SERVICE_SESSION=as_owner.session["token"])

    assert (status, "not attested" in said, "not shown" in said) == (2, True, False)


def test_the_command_says_what_is_missing(service: Service, agent: Agent) -> None:
    assert "SERVICE_SESSION" in run_prompt(service, agent, "")[1]
    status, said = run_prompt(service, agent, "", SERVICE_SESSION="nonsense")
    assert status == 2
    assert "custody import-key: " in said
