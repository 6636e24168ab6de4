"""The package for npm: what it imports, what is in it, and that it is made the same twice."""

import hashlib
import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.fixtures.imports import PROJECT
from tests.sdk.typescript.built import HERE, OWN, SDK, SETS, build, folder_of

IMPORTED = re.compile(r'[}*\w] from "([^"\n]+)"')
# What each file may import besides its own package.
ADAPTERS = {
    "ethers.ts": {"ethers"},
    "kit.ts": {"@solana/kit"},
    "node.ts": {"node:fs/promises"},
    "viem.ts": {"viem", "viem/accounts"},
    "web3js.ts": {"@solana/web3.js"},
}


def test_the_client_imports_nothing_and_each_adapter_its_library() -> None:
    found = {file.name: set(IMPORTED.findall(file.read_text())) for file in (SDK / "src").iterdir()}
    others = {name: {one for one in names if not one.startswith("./")} for name, names in found.items()}

    assert {name: names for name, names in others.items() if names} == ADAPTERS
    # No adapter is a part of the client; the control: the walk sees what there is.
    assert not {f"./{name.replace('.ts', '.js')}" for name in ADAPTERS} & set().union(*found.values())
    assert "./client.js" in found["index.ts"]


def test_the_client_depends_on_nothing_and_has_the_services_version() -> None:
    assert "dependencies" not in OWN
    assert set(OWN["peerDependencies"]) == set(OWN["peerDependenciesMeta"])
    assert OWN["version"] == PROJECT["project"]["version"]
    assert f'VERSION = "{OWN["version"]}"' in (SDK / "src/client.ts").read_text()


@pytest.mark.parametrize("libraries", SETS)
def test_the_libraries_that_are_tried_are_those_that_an_adapter_allows(libraries: str) -> None:
    folder = HERE if libraries == "lowest" else SDK
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    for name, allowed in OWN["peerDependencies"].items():
        lowest, beyond = allowed.removeprefix(">=").split(" <")
        version = locked[f"node_modules/{name}"]["version"]
        if libraries == "lowest":
            assert version == lowest, name
        assert int(version.split(".")[0]) < int(beyond), name


def test_each_entry_of_the_package_is_built() -> None:
    folder_of("newest")

    entries = [
        one for entry in OWN["exports"].values() for one in (entry.values() if isinstance(entry, dict) else [entry])
    ]
    assert [one for one in entries if not (SDK / one).is_file()] == []
    # The whole contract for admins.
    assert "export interface paths" in (SDK / "dist/admin.d.ts").read_text()


def test_every_name_that_the_readme_uses_exists() -> None:
    page = (SDK / "README.md").read_text()
    index = (SDK / "src/index.ts").read_text()
    thrown = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)

    assert [name for name in thrown if not re.search(rf"\b{name}\b", index)] == []
    classes = re.findall(r"^export class (\w+)", (SDK / "src/errors.ts").read_text(), re.MULTILINE)
    assert set(classes) - set(thrown) == {"VaultError", "NotGenuine"}
    for name in ("vaultProvider", "vaultAccount", "VaultSigner", "vaultSigner", "vaultWallet", "payingFetch"):
        assert name in page
        assert any(re.search(rf"export .*\b{name}\b", file.read_text()) for file in (SDK / "src").iterdir()), name


def test_both_languages_have_the_same_methods() -> None:
    written = (SDK / "src/client.ts").read_text().partition("export class Vault")[2]
    methods = set(re.findall(r"^  async (\w+)[(<]", written, re.MULTILINE))
    python = (SDK.parent / "python/custody_sdk/client.py").read_text().partition("class AsyncVault")[2]
    theirs = set(re.findall(r"^    async def ([a-z]\w*)", python, re.MULTILINE)) - {"aclose"}

    assert methods == {re.sub(r"_(\w)", lambda one: one[1].upper(), name) for name in theirs}


def test_the_package_is_made_the_same_twice_and_has_the_client_alone(tmp_path: Path) -> None:
    folder_of("newest")
    made = []
    for _ in range(2):
        build()
        command = ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", str(tmp_path)]
        subprocess.run(command, cwd=SDK, check=True, capture_output=True, timeout=120)
        [package] = tmp_path.glob("*.tgz")
        made.append(hashlib.sha256(package.read_bytes()).hexdigest())
    with tarfile.open(package) as files:
        names = {Path(name).relative_to("package") for name in files.getnames()}

    assert made[0] == made[1]
    assert {str(name) for name in names if len(name.parts) == 1} == {"package.json", "README.md"}
    assert {name.parts[0] for name in names if len(name.parts) > 1} == {"dist"}
    sources = {file.stem for file in (SDK / "src").iterdir()} | {"admin"}
    assert {name.name.split(".")[0] for name in names if name.parts[0] == "dist" and name.suffix} == sources
