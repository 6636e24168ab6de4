"""The client is a room of its own: it imports nothing of the service, and the service carries nothing of it."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import custody_sdk
import pytest

from sdk import agent_contract
from tests.fixtures.imports import PACKAGES, PROJECT, ROOT
from tests.sdk.conftest import SDK
from tests.sdk.installed import HERE, SETS

PACKAGE = SDK / "custody_sdk"
OWN: dict[str, Any] = tomllib.loads((SDK / "pyproject.toml").read_text())["project"]
# What each file may import besides httpx, the standard library and its own package.
ADAPTERS = {
    "eth.py": {"eth_account", "eth_keys", "eth_typing", "eth_utils", "hexbytes", "rlp"},
    "_web3.py": {"web3"},
    "solana.py": {"solders"},
    "x402.py": {"x402"},
    "receipts.py": {"cryptography"},
}


def imports_of(file: Path) -> set[str]:
    """The packages that a file imports, in functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "custody_sdk").split(".")[0])
    return found - set(sys.stdlib_module_names) - {"custody_sdk"}


def test_the_client_imports_httpx_and_each_adapter_its_library() -> None:
    found = {file.name: imports_of(file) - {"httpx"} for file in PACKAGE.glob("*.py")}

    assert {name: others for name, others in found.items() if others} == ADAPTERS
    # The control: the walk sees what there is.
    assert "httpx" in imports_of(PACKAGE / "client.py")


def test_importing_the_client_loads_httpx_and_no_adapters_library() -> None:
    wanted = {"eth_account", "web3", "solders", "x402", "cryptography", *PACKAGES}
    program = f"import sys, custody_sdk; print(sorted(set(sys.modules) & {wanted!r}))"

    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], env={"PYTHONPATH": str(SDK)}, capture_output=True, text=True, check=True
    )

    assert ended.stdout == "[]\n"


def test_neither_the_wheel_nor_an_image_of_the_service_carries_the_client() -> None:
    taken = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]

    assert [name for name in [*taken, *copied] if "sdk" in name] == []


def test_nothing_of_the_service_imports_the_client() -> None:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]

    assert [file for file in files if {"custody_sdk", "sdk"} & imported_roots(file)] == []


def imported_roots(file: Path) -> set[str]:
    """The same, read from the lines: of a thousand files the quick way."""
    return set(re.findall(r"^\s*(?:from|import) (\w+)", file.read_text(), re.MULTILINE))


def test_the_client_has_the_services_version_and_its_contracts() -> None:
    versions = {OWN["version"], custody_sdk.__version__, PROJECT["project"]["version"]}

    assert versions == {agent_contract.json.loads(agent_contract.WRITTEN.read_text())["info"]["version"]}


def test_the_client_depends_on_httpx_alone() -> None:
    assert [re.split(r"[<>=]", one)[0] for one in OWN["dependencies"]] == ["httpx"]


@pytest.mark.parametrize("libraries", SETS)
def test_the_libraries_that_are_tried_are_those_that_an_adapter_allows(libraries: str) -> None:
    lock = (HERE / libraries / "requirements.lock").read_text()
    allowed = [one for many in OWN["optional-dependencies"].values() for one in many] + OWN["dependencies"]
    for requirement in allowed:
        name, lowest, beyond = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)(?:,<([\d.]+))?", requirement).groups()  # type: ignore[union-attr]
        pinned = re.search(rf"^{name}==([\d.]+)", lock, re.MULTILINE)
        assert pinned is not None, name
        version = [int(part) for part in pinned[1].split(".")]
        least = [int(part) for part in lowest.split(".")]
        if libraries == "lowest" and name not in ("cryptography", "httpx"):
            assert version[: len(least)] == least, name
        assert version >= least, name
        assert beyond is None or version < [int(part) for part in beyond.split(".")], name


def test_every_name_that_the_readme_uses_exists() -> None:
    page = (SDK / "README.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    tree = ast.parse(program)
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    raised = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)

    assert [name for name in [*names, *raised] if not hasattr(custody_sdk, name)] == []
    errors = {name for name, one in vars(custody_sdk).items() if isinstance(one, type) and issubclass(one, Exception)}
    assert errors - set(raised) == {"VaultError", "NotGenuine"}


@pytest.mark.long
def test_a_wheel_of_the_client_has_its_package_and_nothing_else(tmp_path: Path) -> None:
    build = "import sys, setuptools.build_meta as made; print(made.build_wheel(sys.argv[1]))"
    subprocess.run(["cp", "-r", str(SDK), str(tmp_path / "sdk")], check=True)
    ended = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=tmp_path / "sdk", capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr

    [wheel] = tmp_path.glob("*.whl")
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(wheel)], capture_output=True, text=True, check=True
    ).stdout
    files = {line.split()[0] for line in listed.splitlines()[1:]}

    assert {name.split("/")[1] for name in files if name.startswith("custody_sdk/")} == {
        *(file.name for file in PACKAGE.iterdir() if file.suffix in (".py", ".typed"))
    }
    assert {name.split("/")[0].partition("-")[0] for name in files} == {"custody_sdk"}
