"""The whole way in a real terminal: an agent asks, a person decides with two keys, the chain has it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fixtures.callers import ADDRESS, Agent, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.outside.processes import PROJECT
from tests.outside.terminal import Terminal, basics, terminal

pytestmark = pytest.mark.long

CUSTODY = PROJECT / ".venv/bin/custody"
# A person decides above a tenth of an ETH.
THRESHOLD = {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": str(10**17)}}
HALF = 5 * 10**17


@pytest.fixture
def environment(service: Service, tenant: Tenant, tmp_path: Path) -> Mapping[str, str]:
    """Environment of the person's terminal: the service's address, and the path of the tenant's key."""
    key_file = tmp_path / "tenant.key"
    key_file.touch(0o600)
    key_file.write_text(tenant.key)
    return {
        **basics(),
        "HOME": str(tmp_path),
        "SERVICE_URL": service.url,
        "SERVICE_KEY_FILE": str(key_file),
    }


@contextmanager
def console(
    environment: Mapping[str, str], tmp_path: Path, *more: str, size: tuple[int, int] = (140, 44)
) -> Iterator[Terminal]:
    """`custody console` in a terminal."""
    with terminal([CUSTODY, "console", *more], tmp_path, environment, size) as window:
        window.sees("1 Approvals", "Help")
        yield window


def ask_for_half(agent: Agent) -> str:
    """The agent asks for more than it may spend alone; the id of what waits."""
    answer = agent.sign(value=HALF, broadcast=True)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["txId"])


def confirm(window: Terminal) -> None:
    """Press what the button says, as people do: again, if nothing came of it. A key too early decides nothing."""

    def answer(flat: str) -> bool:
        for key, words in (("Enter", "(Enter)"), ("y", "(y)")):
            if words in flat and "Asking" not in flat:
                window.press(key)
        return "Cancel (Esc)" not in flat

    window.until(answer, "the end of the question")


@pytest.mark.parametrize("size", [(140, 44), (80, 24)], ids=["wide", "narrow"])
def test_an_order_is_approved_with_two_keys_and_reaches_the_chain(
    environment: Mapping[str, str], tenant: Tenant, evm_node: EvmNode, tmp_path: Path, size: tuple[int, int]
) -> None:
    agent = tenant.agent(THRESHOLD)
    evm_node.fund(agent.evm_address)
    before = int(evm_node.rpc("eth_getBalance", ADDRESS, "latest"), 16)
    with console(environment, tmp_path, size=size) as window:
        waiting = ask_for_half(agent)
        window.sees("0.5 ETH", "Approvals (1)")
        assert window.tmux("display-message", "-p", "#{pane_title}").strip() == "(1) Custody"

        window.press("a")
        asked = window.sees("Approve this?", "(Esc)")
        confirm(window)
        window.until(lambda flat: "Approvals (1)" not in flat, "the end of the item")
        window.press("q")
        status = window.wait_for_end()

    assert "0.5 ETH" in asked
    assert str(HALF) in asked.replace(",", "")
    assert ADDRESS in asked
    assert agent.id in asked
    assert status == 0
    done = tenant.ok("GET", f"/vault/{agent.id}/transactions/{waiting}")
    mined = eventually(lambda: evm_node.rpc("eth_getTransactionReceipt", done["txHash"]))
    assert (mined["from"].lower(), mined["to"].lower()) == (agent.evm_address.lower(), ADDRESS)
    assert int(evm_node.rpc("eth_getBalance", ADDRESS, "latest"), 16) - before == HALF


def test_the_terminal_is_left_as_it_was(environment: Mapping[str, str], tmp_path: Path) -> None:
    with console(environment, tmp_path) as window:
        during = window.modes
        window.press("q")
        status = window.wait_for_end()
        after = window.modes

    assert (status, during["alternate_on"], during["mouse_any_flag"]) == (0, "1", "1")
    assert after == {"alternate_on": "0", "mouse_any_flag": "0", "cursor_flag": "1"}


def test_a_key_pressed_to_interrupt_says_how_to_quit_and_quits_nothing(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    with console(environment, tmp_path) as window:
        window.press("C-c")
        window.sees("to quit", "1 Approvals")
        window.press("q")

        assert window.wait_for_end() == 0


def test_the_window_may_change_its_size(environment: Mapping[str, str], tenant: Tenant, tmp_path: Path) -> None:
    agent = tenant.agent(THRESHOLD)
    ask_for_half(agent)
    with console(environment, tmp_path) as window:
        window.sees(agent.id, "0.5 ETH")
        for columns, lines in ((80, 24), (200, 60), (80, 24)):
            window.resize(columns, lines)
            window.sees("0.5 ETH", "Help")
        window.press("q")

        assert window.wait_for_end() == 0


def test_a_read_only_console_decides_nothing(environment: Mapping[str, str], tenant: Tenant, tmp_path: Path) -> None:
    agent = tenant.agent(THRESHOLD)
    ask_for_half(agent)
    with console(environment, tmp_path, "--read-only") as window:
        window.sees("READ ONLY", agent.id, "0.5 ETH")
        window.press("a")
        window.press("Enter")
        # Whatever was pressed has been looked at by the time that another key shows.
        window.press("2")
        window.sees("2 Agents")
        window.press("1")
        flat = window.sees(agent.id, "0.5 ETH")
        window.press("q")
        window.wait_for_end()

    assert "(Enter)" not in flat
    assert tenant.ok("GET", "/approvals/stats")["pending"] == 1


def test_without_a_service_the_console_waits_for_it(environment: Mapping[str, str], tmp_path: Path) -> None:
    away = {**environment, "SERVICE_URL": "http://127.0.0.1:9"}
    with terminal([CUSTODY, "console"], tmp_path, away) as window:
        window.sees("cannot be reached")
        window.press("C-q")

        assert window.wait_for_end() == 0


def test_the_terminal_of_standard_error_is_not_drawn_on(environment: Mapping[str, str], tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    command = ["sh", "-c", f"exec {CUSTODY} console 2>{errors}"]
    with terminal(command, tmp_path, environment) as window:
        window.sees("1 Approvals", "Help")
        window.press("q")

        assert window.wait_for_end() == 0
    assert errors.read_bytes() == b""
