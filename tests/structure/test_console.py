"""Laws over the console's source: one way to show text, one kind of question, one meaning of a key. Decision 0036."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from textual.binding import Binding

from console.app import Console
from console.dialogs.ask import Ask
from tests.fixtures.each import each

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "console").rglob("*.py"))
PICTURES = ROOT / "tests/console/__snapshots__"
# The one widget that takes text; it reads no markup.
DOOR = "widgets/plain_text.py"
# What stands before the first screen, or beside the application.
SPEAKING = {"__main__.py", "web.py"}
# Other widgets that would read markup, or be given text where markup is read.
READING_MARKUP = {
    "Static",
    "Label",
    "Markdown",
    "MarkdownViewer",
    "RichLog",
    "Log",
    "Link",
    "Pretty",
    "Digits",
    "Collapsible",
    "DataTable",
    "OptionList",
    "SelectionList",
    "Tree",
    "DirectoryTree",
}
# The words beside a key, for every key of a place: each has one meaning, wherever one is.
MEANINGS = {
    "a": {"Approve"},
    "d": {"Deny"},
    "r": {"Reload", "Try again"},
    "s": {"Sort"},
    "slash": {"Search", "Filter"},
    "space": {"Mark"},
    "question_mark": {"Help", "Close"},
    "i": {"Sign in"},
    "q": {"Quit", "Close"},
    "y": {"Replay"},
}


def name(file: Path) -> str:
    return str(file.relative_to(ROOT / "console"))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    """Everything called, by its last word."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", "")), node


def keywords(node: ast.Call) -> dict[str, object]:
    return {word.arg: getattr(word.value, "value", ...) for word in node.keywords if word.arg}


@each("file", FILES, ids=name)
def test_text_is_shown_by_the_widget_that_reads_no_markup(file: Path) -> None:
    imported = {
        alias.name
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual.widgets")
        for alias in node.names
    }
    marked = [
        f"{called} in line {node.lineno}"
        for called, node in calls(file)
        if called in {"from_markup", "from_rich_text", "render_str"}
        or keywords(node).get("markup", False) is not False
        or (called == "notify" and keywords(node).get("markup") is not False)
    ]

    assert imported & READING_MARKUP == ({"Static"} if name(file) == DOOR else set())
    assert marked == []


@each("file", FILES, ids=name)
def test_text_does_not_get_to_where_markup_is_read(file: Path) -> None:
    """Titles of borders, tooltips and placeholders are markup: only our own words stand there."""
    placed = [
        f"line {node.lineno}"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if getattr(target, "attr", "") in {"border_title", "border_subtitle", "tooltip"}
        if not _our_words(node.value)
    ]
    given = [
        f"{called} in line {node.lineno}"
        for called, node in calls(file)
        for word in node.keywords
        if word.arg in {"tooltip", "border_title"} and not isinstance(word.value, ast.Constant)
    ]

    assert placed + given == []


def _our_words(value: ast.expr) -> bool:
    both = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
    return all(isinstance(one, ast.Constant) for one in both)


def test_nothing_is_printed_over_the_screen() -> None:
    found = {name(file) for file in FILES for called, _ in calls(file) if called in {"print", "breakpoint"}}

    assert found == SPEAKING


def test_every_question_is_asked_the_same_way() -> None:
    """A dialog that is no question only shows something: nothing in it is confirmed or sent."""
    for file in (ROOT / "console/dialogs").glob("*.py"):
        modal = [
            node for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef) and "ModalScreen" in _kinds(node)
        ]
        sends = any(called in {"send", "act"} for called, _ in calls(file))
        assert file.name == "ask.py" or not (modal and sends), file.name
    assert {"Approve", "Deny"} <= {kind.__name__ for kind in _below(Ask)}


def _kinds(node: ast.ClassDef) -> set[str]:
    return {re.split(r"[\[(]", ast.unparse(kind))[0] for kind in node.bases}


def _below(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


@each("place", Console.MODES)
def test_every_place_has_a_picture(place: str) -> None:
    drawn = [file for file in PICTURES.glob(f"test_{place}*/*.svg") if file.stat().st_size > 1_000]

    assert drawn


def bindings() -> Iterator[tuple[str, str, str]]:
    """Each key of a place, with its words and the place."""
    for place, screen in [("everywhere", Console), *Console.MODES.items()]:
        for kind in screen.__mro__:
            if kind.__module__.startswith("console."):
                for one in Binding.make_bindings(kind.__dict__.get("BINDINGS", ())):
                    yield one.key, one.description, place


def test_a_key_means_the_same_wherever_one_is() -> None:
    other = [(key, words, place) for key, words, place in bindings() if key in MEANINGS and words not in MEANINGS[key]]

    assert other == []


def test_keys_that_decide_or_freeze_do_nothing_else_anywhere() -> None:
    found = defaultdict(set)
    for key, words, _ in bindings():
        # To take it back again is the same key.
        found[key].add(re.sub("^un", "", words.lower()))

    acts = re.compile("approve|deny|freeze", re.IGNORECASE)
    acting = {key: words for key, words in found.items() if any(acts.search(word) for word in words)}
    assert {key: words for key, words in acting.items() if len(words) > 1} == {}
    assert {"a", "d"} <= acting.keys()


def test_numbers_lead_to_places_and_nowhere_else() -> None:
    numbers = {(key, place) for key, _, place in bindings() if key.isdecimal()}

    assert numbers == {(str(number), "everywhere") for number in range(1, len(Console.MODES) + 1)}
