"""No module needs itself by way of others, not even for a type: each can be read after what it imports, and alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.imports import PACKAGES, ROOT, modules_of


def imports(package: str) -> dict[str, set[str]]:
    """Find what each module of a package imports of that package, for types too."""
    modules = set(modules_of(package))
    return {name: {one for one in _imports(_file(name), modules) if one in modules and one != name} for name in modules}


def _file(name: str) -> Path:
    place = ROOT / name.replace(".", "/")
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _imports(file: Path, modules: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Each set of modules all of which reach each other, the largest first (Tarjan's strongly connected components)."""
    number, least, stack, found = dict[str, int](), dict[str, int](), list[str](), list[set[str]]()

    def visit(name: str) -> None:
        number[name] = least[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
                least[name] = min(least[name], least[other])
            elif other in stack:
                least[name] = min(least[name], number[other])
        if least[name] == number[name]:
            place = stack.index(name)
            found.append(set(stack[place:]))
            del stack[place:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return sorted((one for one in found if len(one) > 1), key=len, reverse=True)


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_do_not_import_each_other_in_a_circle(package: str) -> None:
    assert circles(imports(package)) == []


def test_a_circle_of_modules_would_be_found() -> None:
    line = {"a": {"b", "c"}, "b": {"c"}, "c": set[str]()}
    assert circles(line) == []
    assert circles(line | {"c": {"a"}}) == [{"a", "b", "c"}]
    assert circles(line | {"c": {"d"}, "d": {"c"}}) == [{"c", "d"}]


def test_an_import_for_types_alone_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text("if TYPE_CHECKING:\n    from signer import record\n    from signer.votes import Tally\n")
    assert [*_imports(file, {"signer.record", "signer.votes"})] == ["signer.record", "signer.votes"]
