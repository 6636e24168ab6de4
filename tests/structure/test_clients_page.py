"""docs/proxy.md is what is declared in tests/clients/table.py, in the versions of the lock files."""

from tests.clients.installed import version_of
from tests.clients.page import PAGE, fill, tables
from tests.clients.table import CLIENTS, SAME, STEPS, TUNNEL, Run, judge, runs


def test_the_page_is_the_table_as_it_is_declared() -> None:
    page = PAGE.read_text()

    assert page == fill(page), "make clients writes it, or python -P -m tests.clients.page"
    assert tables() in page


def test_every_client_has_a_version_and_steps_that_are_explained() -> None:
    for client, run in runs():
        assert version_of(*client.package)
        assert run.steps
        assert {*run.steps, *run.refused} <= set(STEPS)
        assert set(run.refused) <= set(run.steps)


def test_no_client_writes_a_wrong_file() -> None:
    """20 MiB, whole and in parts."""
    done = {step for client in CLIENTS for run in client.runs for step in run.steps}
    assert {"download", "parts", "no parts"} <= done


def test_a_step_that_ends_otherwise_is_noticed() -> None:
    failed = {"error": "HTTPError", "said": "400 range_not_forwarded"}
    run = Run(TUNNEL, "nowhere", ("call", "download"), refused={"call": ("range_not", "an error")})

    assert judge("download", SAME, run)[0]
    assert not judge("download", [SAME[0] * 2, SAME[1]], run)[0]
    assert not judge("download", failed, run)[0]
    assert not judge("download", None, run)[0]
    assert judge("no parts", failed, run)[0]
    assert not judge("no parts", SAME, run)[0]
    assert judge("call", failed, run)[0]
    assert not judge("call", "one two three", run)[0]
    assert not judge("call", failed | {"said": "something else"}, run)[0]
