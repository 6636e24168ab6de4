"""Callers who may use the tools, by either way in: an agent's token and nothing else, from where it was meant."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from custody.version import VERSION
from tests.fixtures.callers import ADDRESS, Agent, Client, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.mcp import ERAS, McpServer, running_mcp, token_of
from tests.fixtures.people import Person
from tests.fixtures.server import EVM_CHAIN, Service
from tests.outside import npm
from tests.outside.mcp_clients.driven import PYTHON, running_node_client, running_python_client, set_up
from tests.outside.processes import PROJECT

NAMES = [
    "wallet_status",
    "list_apis",
    "check_payment",
    "pay",
    "sign_typed_data",
    "pay_demand",
    "get_payment",
    "wait_for_decision",
    "call_api",
]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def post(mcp: McpServer, content: Any = HELLO, **headers: str) -> httpx.Response:
    """Say hello to the server as a client of 2025 does."""
    given = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return httpx.post(
        mcp.url,
        content=body,
        headers=given | {name.replace("_", "-"): one for name, one in headers.items()},
        timeout=30,
    )


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def test_only_an_agents_living_token_is_let_in(
    mcp: McpServer, agent: Agent, tenant: Tenant, as_owner: Person, as_nobody: Client
) -> None:
    assert post(mcp, **bearer(token_of(agent))).status_code == 200
    session = as_owner.headers["Authorization"].removeprefix("Bearer ")

    assert code(post(mcp)) == (401, "no_credential")
    assert code(post(mcp, Authorization="Basic YTpi")) == (401, "no_credential")
    assert code(post(mcp, **bearer("a b"))) == (401, "no_credential")
    assert code(post(mcp, **bearer("x" * 9000))) == (401, "no_credential")
    assert code(post(mcp, **bearer("nonsense"))) == (401, "bad_token")
    assert code(post(mcp, **bearer(tenant.key)))[0] == 401
    assert code(post(mcp, **bearer(session))) == (403, "wrong_kind")
    two = [("Authorization", f"Bearer {token_of(agent)}"), ("Authorization", "Bearer other")]
    assert code(httpx.post(mcp.url, headers=two, json=HELLO, timeout=60)) == (401, "no_credential")
    # There is no authorization server, so no client is sent to look for one.
    assert post(mcp).headers["WWW-Authenticate"] == 'Bearer realm="custody"'


def test_a_token_that_is_revoked_is_found_out(mcp: McpServer, tenant: Tenant) -> None:
    agent = tenant.agent()
    assert post(mcp, **bearer(token_of(agent))).status_code == 200

    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")

    eventually(lambda: post(mcp, **bearer(token_of(agent))).status_code, 401)
    assert code(post(mcp, **bearer(token_of(agent)))) == (401, "token_revoked")


def test_a_request_by_another_name_or_from_a_strangers_page_is_refused(mcp: McpServer, agent: Agent) -> None:
    token = bearer(token_of(agent))
    assert post(mcp, **token, Host="evil.example").status_code == 421
    assert post(mcp, **token, Origin="https://evil.example").status_code == 403
    # The control.
    assert post(mcp, **token, Origin="http://localhost:3000").status_code == 200


def test_a_name_that_the_operator_lists_is_answered(service: Service, agent: Agent) -> None:
    token = bearer(token_of(agent))
    listed = {"SERVICE_MCP_HOST": "127.0.0.2", "SERVICE_MCP_ALLOWED_HOSTS": "tools.example.com,agents.example.com:8443"}
    with running_mcp(service, **listed) as mcp:
        assert post(mcp, **token, Host="tools.example.com").status_code == 200
        assert post(mcp, **token, Host="tools.example.com:8090").status_code == 200
        assert post(mcp, **token, Host="agents.example.com:8443").status_code == 200
        assert post(mcp, **token, Host="agents.example.com:9").status_code == 421
        assert post(mcp, **token, Host="tools.example.com.evil.example").status_code == 421
        with pytest.raises(httpx.ConnectError):
            post(McpServer(mcp.url.replace("127.0.0.2", "127.0.0.1")), **token)


def test_a_message_is_bounded_and_what_is_none_is_refused(mcp: McpServer, agent: Agent) -> None:
    token = bearer(token_of(agent))
    assert post(mcp, b'"' + b"a" * (1 << 20) + b'"', **token).status_code == 413
    assert post(mcp, b"[" * 100_000, **token).status_code == 400
    assert post(mcp, b"{", **token).status_code == 400
    assert post(mcp, **token).status_code == 200


def client_environment(service: Service, **more: str) -> dict[str, str]:
    """Give what a client says to the server that it starts."""
    return {"SERVICE_URL": service.url, "SERVICE_PROXY_URL": service.proxy_url, **more}


@pytest.mark.parametrize("era", ERAS)
def test_a_client_starts_it_with_a_file_that_may_be_renewed(
    service: Service, tenant: Tenant, tmp_path: Path, era: str
) -> None:
    first, second = tenant.agent(), tenant.agent()
    file = tmp_path / "agent.token"
    file.write_text(token_of(first) + "\n")
    with running_python_client("stdio", era, client_environment(service, SERVICE_AGENT_TOKEN_FILE=str(file))) as client:
        assert [tool["name"] for tool in client.tools()] == NAMES
        assert client.ok("wallet_status")["addresses"]["evm"] == first.evm_address
        file.write_text(token_of(second))
        assert client.ok("wallet_status")["addresses"]["evm"] == second.evm_address
        for wrong, word in (("", "does not hold"), ("a b", "does not hold"), ("nonsense", "bad_token")):
            file.write_text(wrong)
            assert word in client.refusal("wallet_status")
        file.unlink()
        assert "cannot be read" in client.refusal("wallet_status")


@pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")
@pytest.mark.parametrize("program", ["client.mjs", "sdk.mjs"])
def test_their_clients_of_another_language_use_every_tool(
    service: Service, mcp: McpServer, tenant: Tenant, program: str
) -> None:
    agent = tenant.agent()
    order = {"to": ADDRESS, "amount": "7", "chain_id": EVM_CHAIN}
    document = {
        "domain": {"name": "Notes", "version": "1", "chainId": 1},
        "types": {"Note": [{"name": "text", "type": "string"}]},
        "primaryType": "Note",
        "message": {"text": "hello"},
    }
    with (
        mcp.node_client(agent, program) as by_http,
        running_node_client(
            program, "stdio", client_environment(service, SERVICE_AGENT_TOKEN=token_of(agent))
        ) as by_stdio,
    ):
        for number, client in enumerate((by_http, by_stdio)):
            assert [tool["name"] for tool in client.tools()] == NAMES
            signed = client.ok("sign_typed_data", payment_name=f"note-{number}", document=document)
            same = {"transaction_id": signed["transaction_id"]}
            assert client.ok("get_payment", **same)["state"] == "signed"
            assert client.ok("wait_for_decision", **same, timeout_seconds=1)["decision"] == "approved"
            assert client.ok("check_payment", **order)["decision"] == "sign"
            assert client.refusal("pay", payment_name="invoice-1", **order).startswith("insufficient_funds: ")
            assert client.ok("list_apis") == {"apis": []}
            assert client.ok("wallet_status")["frozen"] is False
            # No proxy runs here: nothing left, and that is what it says.
            said = client.refusal("call_api", host="api.example.com", path="/")
            assert said.endswith("(it cannot be reached). Nothing was changed. Call again in a moment.")
            assert client.ok("pay_demand", payment_name="quote-1", demand={})["outcome"] == "refused"


def test_nothing_of_a_token_is_printed_and_a_wrong_setting_is_named(service: Service, agent: Agent) -> None:
    set_up()

    def run(*arguments: str, said: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [PYTHON, "-P", "-m", "mcp_server", *arguments],
            check=False,
            cwd=PROJECT,
            env={"PATH": os.environ["PATH"], **environment},
            input=said,
            capture_output=True,
            timeout=60,
        )

    hello = json.dumps(HELLO).encode() + b"\n"
    told = run(said=hello, **client_environment(service, SERVICE_AGENT_TOKEN=token_of(agent)))
    assert told.returncode == 0
    assert b"SERVICE_AGENT_TOKEN_FILE" in told.stderr
    assert token_of(agent).encode() not in told.stdout + told.stderr
    assert json.loads(told.stdout.splitlines()[0])["result"]["serverInfo"]["version"] == VERSION
    for arguments, environment, word in (
        (["--http"], {}, b"SERVICE_MCP_PORT"),
        (["--http"], {"SERVICE_MCP_PORT": "99999"}, b"SERVICE_MCP_PORT"),
        ([], {"SERVICE_URL": "ftp://x"}, b"SERVICE_URL"),
        ([], {"SERVICE_URL": "http://u:p@x"}, b"SERVICE_URL"),
        ([], {"SERVICE_AGENT_TOKEN": "a b"}, b"SERVICE_AGENT_TOKEN"),
    ):
        wrong = run(*arguments, **environment)
        assert (wrong.returncode, word in wrong.stderr) == (2, True), (arguments, environment, wrong.stderr)


def run_install(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Have the entry printed or written, by a user whose home and project are this folder."""
    return subprocess.run(
        [PYTHON, "-P", "-m", "mcp_server", "install", *words],
        check=False,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_projects_link_leads_no_entry_out_of_the_project(tmp_path: Path) -> None:
    set_up()
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere.json"
    project.mkdir()
    entry = project / ".mcp.json"
    for leads_to in (elsewhere, project / "inside.json"):
        entry.unlink(missing_ok=True)
        entry.symlink_to(leads_to)
        done = run_install(project, "claude-code", "--write", SERVICE_AGENT_TOKEN_FILE="agent.token")
        # The control: one within the project stays, and what it leads to is written.
        is_inside = leads_to.parent == project
        assert (done.returncode, leads_to.exists()) == ((0, True) if is_inside else (2, False)), done.stderr


def test_an_entry_is_put_beside_the_others_and_has_no_token(tmp_path: Path, agent: Agent) -> None:
    set_up()
    token = tmp_path / "agent.token"
    token.write_text(token_of(agent))
    kept = tmp_path / ".cursor" / "mcp.json"

    def install(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_install(tmp_path, *words, **environment)

    assert install("cursor").returncode == 2
    given = {"SERVICE_AGENT_TOKEN_FILE": str(token), "SERVICE_URL": "http://127.0.0.1:1"}
    printed = json.loads(install("vscode", **given).stdout)["servers"]["custody"]
    assert printed["env"] == given
    assert not kept.exists()

    kept.parent.mkdir()
    kept.write_text('{"mcpServers": {"other": {"command": "x"}}, "theme": "dark"}')
    kept.chmod(0o600)
    assert install("cursor", "--write", **given).returncode == 0
    assert json.loads(kept.read_text()) == {
        "mcpServers": {"other": {"command": "x"}, "custody": printed},
        "theme": "dark",
    }
    assert kept.stat().st_mode & 0o777 == 0o600
    assert token_of(agent) not in kept.read_text()
    for wrong in ("[]", "{", '{"mcpServers": []}', "[" * 100_000):
        kept.write_text(wrong)
        assert install("cursor", "--write", **given).returncode == 2
        assert kept.read_text() == wrong
