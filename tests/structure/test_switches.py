"""Every setting occurs in a test: one that no test sets may widen what is allowed, and nobody would see it."""

import re

from ops import variables
from tests.fixtures.each import each
from tests.fixtures.imports import python_files
from tests.outside.processes import PROJECT

# Of these a test sets no value of its own: sizes, times and places, never what is allowed. The list may only shrink.
UNTRIED = frozenset(
    {
        "SERVICE_IDENTITY_KEY_FILE",
        "SERVICE_QUOTA_BYTES_PER_DAY",
        "SERVICE_QUOTA_CREDENTIAL_ROUTES",
        "SERVICE_QUOTA_EVENT_STREAMS",
        "SERVICE_QUOTA_EVENT_STREAMS_PER_PERSON",
        "SERVICE_QUOTA_MEMBERS",
        "SERVICE_QUOTA_ORDERS",
        "SERVICE_QUOTA_ORDERS_PER_DAY",
        "SERVICE_QUOTA_POLICY_BYTES",
        "SERVICE_QUOTA_TENANTS_PER_PERSON",
        "SERVICE_QUOTA_WEBHOOKS",
    }
)
# What only looks at values, or at names: no process runs with what stands there.
_NO_RUN = {
    *("setup/test_variables.py", "setup/test_wrong_values.py", "structure/test_switches.py"),
    *("structure/compose_settings.py", "structure/test_compose_settings.py"),
}
TESTS = PROJECT / "tests"
TEXT = "\n".join(
    file.read_text()
    for folder in TESTS.iterdir()
    if folder.is_dir() and folder.name not in ("judges", "vectors")
    for file in python_files(folder)
    if str(file.relative_to(TESTS)) not in _NO_RUN
)
WHOLE = frozenset(re.findall(r"\bSERVICE_[A-Z_0-9]+\b", TEXT))
# As `f"SERVICE_RATE_LIMIT_{name}"`: many settings of one kind, set together.
_TEMPLATES = re.findall(r'f"(SERVICE_[A-Z]+_[A-Z_]*)\{[^}]+\}([A-Z_]*)"', TEXT)
TOGETHER = re.compile("|".join({f"{begins}[A-Z_]+{ends}" for begins, ends in _TEMPLATES}))


def is_tried(name: str) -> bool:
    # A switch is set by its whole name.
    return name in WHOLE or (name not in variables.SWITCHES and TOGETHER.fullmatch(name) is not None)


@each("name", sorted(variables.KNOWN.keys() - UNTRIED))
def test_a_setting_occurs_in_a_test(name: str) -> None:
    assert is_tried(name), f"no test runs with {name}"


@each("name", sorted(UNTRIED))
def test_an_exception_is_still_one(name: str) -> None:
    assert name in variables.KNOWN
    assert not is_tried(name), f"a test runs with {name} now: take it off the list"


def test_no_switch_is_an_exception() -> None:
    assert variables.SWITCHES
    assert not variables.SWITCHES & UNTRIED
