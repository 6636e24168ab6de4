"""The page of settings, the table that is looked at before a start, and what the sources read are one list."""

import re

from ops import variables
from tests.fixtures.each import each
from tests.outside.processes import PROJECT

PAGE = (PROJECT / "docs/environment.md").read_text()
ROWS = [row.split("|")[1] for row in PAGE.splitlines() if row.startswith("| `")]
TOLD = [name for row in ROWS for name in re.findall(r"`([A-Z][A-Z_0-9]+(?:<\w+>)?)`", row)]
FOLDERS = (
    "api",
    "signer",
    "identity",
    "scheduler",
    "proxy_addon",
    "custody",
    "openers",
    "ops",
    "console",
    "mcp_server",
    "tenant_command",
    "words",
)
READ = {
    name: file
    for folder in FOLDERS
    for file in (PROJECT / folder).rglob("*.py")
    for name in re.findall(r"\"(SERVICE_[A-Z_0-9]*[A-Z])\"", file.read_text())
}


def test_the_page_has_a_row_for_each_known_variable_and_no_other() -> None:
    whole = sorted(name for name in TOLD if not name.endswith(">"))

    assert whole == sorted(variables.NAMES)
    assert {name.partition("<")[0] for name in TOLD if name.endswith(">")} == set(variables.PREFIXES)


@each("name", sorted(READ))
def test_a_variable_that_the_sources_name_is_known(name: str) -> None:
    assert name in variables.NAMES, f"{READ[name]} reads {name}, which no start looks at"
