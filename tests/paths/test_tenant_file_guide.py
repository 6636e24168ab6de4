"""docs/tenant-file.md does what it says: its blocks, pasted in order by an owner, against a real service."""

from pathlib import Path

import msgspec

from tests.fixtures.console_sessions import keep_session
from tests.fixtures.pages import FENCE, Reader, only, programs_of
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT

PAGE = "docs/tenant-file.md"


def test_a_tenant_is_exported_written_planned_and_applied(service: Service, as_owner: Person, tmp_path: Path) -> None:
    reader = Reader(tmp_path, service)
    reader.environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    folder = tmp_path / ".config/custody"
    folder.mkdir(mode=0o700, parents=True)
    keep_session(folder, service.url, as_owner)
    [begins, applies] = only(programs_of(PAGE), "sh")
    [wanted] = [text for language, text in FENCE.findall((PROJECT / PAGE).read_text()) if language == "yaml"]

    begun = reader.paste(begins)
    exported = (tmp_path / "tenant.yaml").read_text()
    (tmp_path / "tenant.yaml").write_text(wanted)
    planned, ends, rest = reader.paste(applies).partition("second factor of yours.\n")
    done, _, again = rest.partition("Done: 5 steps.\n")

    assert begun == "Nothing to do: 1 thing is as the file says.\n"
    assert again == "Nothing to do: 5 things are as the file says.\n"
    assert exported.startswith("# ")
    assert done == planned + ends
    assert "LOOSER: the secret 'openai' goes to api.openai.com" in planned
    [agent] = as_owner.ok("GET", "/agents/buyer/policies")
    [known] = as_owner.ok("GET", "/policy-sets")
    assert agent["config"] == {"policySet": known["id"]}
    shown = msgspec.json.decode(reader.run(["sh", "-c", "custody apply -f tenant.yaml --dry-run --json"]))
    assert shown["steps"] == []
