"""`custody run` says it when a program's Node is too old to heed the proxy."""

from pathlib import Path

import pytest

from ops.node import uses_the_proxy, warning


def node(folder: Path, version: str, name: str = "node") -> dict[str, str]:
    """An environment whose `node` says that it has this version."""
    script(folder / name, f'#!/bin/sh\nif [ "$*" = --version ] && [ -z "$NODE_OPTIONS" ]; then echo "{version}"; fi')
    return {"PATH": f"{folder}:/bin:/usr/bin", "NODE_OPTIONS": "--require nowhere"}


def script(file: Path, text: str) -> str:
    file.write_text(text + "\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(
    ("version", "well"),
    [
        ("18.20", False),
        ("20.20", False),
        ("22.20", False),
        ("22.21", True),
        ("22.30", True),
        ("23.11", False),
        ("24.4", False),
        ("24.5", True),
        ("24.11", True),
        ("25.0", True),
        ("100.0", True),
    ],
)
def test_node_versions_that_heed_the_proxy(tmp_path: Path, version: str, well: bool) -> None:
    said = warning("node", node(tmp_path, f"v{version}.1"))

    assert (said is None) is well
    assert uses_the_proxy(*map(int, version.split("."))) is well
    assert well or f"{tmp_path}/node is Node {version}," in str(said)


@pytest.mark.parametrize(
    "first", ["#!/usr/bin/env node", "#!/usr/bin/env -S node --no-warnings", "#! {folder}/node", "#!{folder}/nodejs -x"]
)
def test_a_script_is_known_by_its_first_line(tmp_path: Path, first: str) -> None:
    environment = node(tmp_path, "v20.1.0")
    node(tmp_path, "v20.1.0", "nodejs")
    script(tmp_path / "npx", first.format(folder=tmp_path) + "\nrequire('x')")

    assert "Node 20.1" in str(warning("npx", environment))
    assert "Node 20.1" in str(warning(str(tmp_path / "npx"), environment))


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/usr/bin/env python3", "node", "", "#!", "#!/usr/bin/env nodemon"])
def test_of_other_programs_nothing_is_said(tmp_path: Path, first: str) -> None:
    script(tmp_path / "other", first)

    assert warning("other", node(tmp_path, "v20.1.0")) is None
    assert warning("none-such", {"PATH": str(tmp_path)}) is None
    assert warning("/bin/sh", {}) is None


@pytest.mark.parametrize("said", ["", "twenty", "v20", "20.1.0"])
def test_a_node_that_does_not_say_its_version_is_let_be(tmp_path: Path, said: str) -> None:
    assert warning("node", node(tmp_path, said)) is None
