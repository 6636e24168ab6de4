"""Shares and recovery keys at a real terminal: shown once each, on a screen that goes, and typed back."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from openers import shares, written_key
from openers.kinds import people
from tests.openers.asking import FILE, surroundings
from tests.outside.typing_person import type_at_a_terminal

HANDING = """
import sys
from openers import shares, written_key
from openers.kinds import people, recovery
from openers.outcomes import NotOpened
split = people.split(sys.argv[1], sys.argv[2], bytes(32))
things = [people.paper_of(at, text) for at, text in enumerate(split.shares)]
things += [recovery.paper_of(written_key.write(bytes([9] * 32)))] * (len(sys.argv) > 3)
try:
    with shares.open_terminal() as terminal:
        shares.hand_out(things, terminal)
        terminal.say("all is well\\n")
except NotOpened as problem:
    sys.exit(problem.sentence)
"""
WRITTEN = "Enter, when it is written down and read over: "
SCREEN = re.compile(r"\x1b\[\?1049h(.*?)\x1b\[\?1049l", re.DOTALL)


def hand_out(*words: str, answer: Callable[[str, str], str]) -> tuple[int, str]:
    """Hand shares out to somebody who types back what `answer` makes of the screens and the question."""
    command = [sys.executable, "-P", "-c", HANDING, *words]
    asked = {f"not shown: {label}: ": (lambda shown, label=label: answer(shown, label)) for label in LABELS}
    return type_at_a_terminal(command, surroundings({}), {WRITTEN: "", **asked})


LABELS = [*(f"share {number}" for number in range(1, 17)), "the recovery key"]


def copy_of(shown: str, label: str) -> str:
    """Copy from the screen with this label, as a person on paper."""
    (screen,) = [screen for screen in SCREEN.findall(shown) if f"{label}," in screen]
    if label == "the recovery key":
        return re.search(r"CUSTODY-RECOVERY-1 \S+", screen)[0]
    return " ".join(re.findall(r"\d+ ([a-z]+)", screen.split("once.")[1]))


def test_each_is_shown_once_and_two_are_typed_back() -> None:
    status, shown = hand_out("3/5", FILE, answer=copy_of)
    assert (status, "all is well" in shown) == (0, True)
    screens = SCREEN.findall(shown)
    assert [f"share {at}, {at} of 5 to write down" in screen for at, screen in enumerate(screens, 1)] == [True] * 5
    assert shown.count("Type back") == shares.TYPED_BACK
    outside = SCREEN.sub("", shown)
    for number in range(1, 6):
        assert len(copy_of(shown, f"share {number}").split()) == people.WORDS
        # Neither what was shown nor what was typed stands on the screen that stays.
        assert copy_of(shown, f"share {number}")[:30] not in outside
    assert all(screen.endswith("\x1b[H\x1b[2J\x1b[3J") for screen in screens)


def test_nothing_is_changed_where_nobody_types_any_more() -> None:
    status, shown = hand_out("2/2", FILE, answer=lambda _, __: "\x04")
    assert (status, "Nothing was typed, and nothing was changed." in shown) == (1, True)


def test_a_recovery_key_is_handed_out_like_a_share() -> None:
    status, shown = hand_out("2/2", FILE, "recovery", answer=copy_of)
    assert (status, shown.count("Type back")) == (0, 2)
    assert written_key.read(copy_of(shown, "the recovery key")) == bytes([9] * 32)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "A share has 33 words, and 0 were given."),
        ("zzzz " * 33, "Word 1 is none of the list"),
        ("academic " * 33, "That is another one."),
    ],
)
def test_a_share_that_was_not_written_down_right_ends_without_a_change(typed: str, said: str) -> None:
    """Three tries, each with its reason."""
    status, shown = hand_out("3/5", FILE, answer=lambda _, __: typed)
    assert (status, shown.count(said)) == (1, shares.TRIES)
    assert "Nothing was changed" in shown
    assert "all is well" not in shown


def test_a_mistake_is_said_and_another_try_is_right() -> None:
    tries: list[str] = []

    def answer(shown: str, label: str) -> str:
        tries.append(label)
        return copy_of(shown, label) if len(tries) > 1 else "academic"

    status, shown = hand_out("2/3", FILE, answer=answer)
    assert (status, len(tries)) == (0, shares.TYPED_BACK + 1)
    assert "A share has 33 words, and 1 were given." in shown


def test_another_share_in_its_place_is_noticed() -> None:
    def answer(shown: str, label: str) -> str:
        return copy_of(shown, "share 1" if label == "share 2" else "share 2")

    status, shown = hand_out("2/2", FILE, answer=answer)
    assert (status, shown.count("That is another one.")) == (1, shares.TRIES)


def test_nothing_is_shown_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", HANDING, "2/2", FILE],
        capture_output=True,
        env=surroundings({}),
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"Shares and recovery keys are shown at a terminal only: run this in one.\n"


def test_a_thing_that_is_handed_out_does_not_say_itself() -> None:
    assert repr(people.paper_of(2, "academic acid")) == "Paper(share 3)"
