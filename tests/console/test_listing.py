"""The list that every screen has: its cursor stays on its thing, ten thousand rows draw like ten. docs/console.md."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from console import themes
from console.widgets.columns import fit
from console.widgets.listing import Column, Listing

Row = tuple[str, str]
KEYS = [f"k{number}" for number in range(40)]


class Shown(App[None]):
    """A list alone in a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.listing: Listing[Row] = Listing(
            [
                Column("Name", lambda row: row[0], 6),
                Column("What", lambda row: (row[1], "bad"), 8, share=1),
                Column("Amount", lambda row: "7", 6, right=True),
                Column("More", lambda row: "more", 4, wide=True),
            ],
            lambda row: row[0],
            empty="Nothing waits.",
            mark=True,
        )
        self.heard: list[tuple[str, bool]] = []
        self.chosen: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.listing

    def on_mount(self) -> None:
        themes.register(self, "dark")
        self.listing.focus()

    def on_listing_highlighted(self, event: Listing.Highlighted) -> None:
        self.heard.append((event.row[0] if event.row else "", event.by_person))

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        self.chosen.append(event.row[0])

    @property
    def lines(self) -> list[str]:
        """Lines in sight."""
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]


def rows(*keys: str) -> list[Row]:
    return [(key, f"thing {key}") for key in keys]


@asynccontextmanager
async def show(width: int = 40, height: int = 11) -> AsyncIterator[tuple[Shown, Pilot[None]]]:
    app = Shown()
    async with app.run_test(size=(width, height)) as pilot:
        yield app, pilot


STEP = st.one_of(
    st.tuples(st.just("show"), st.lists(st.sampled_from(KEYS), unique=True)),
    st.tuples(st.just("move"), st.integers(-30, 30)),
    st.tuples(st.just("scroll"), st.integers(0, 40)),
)


async def test_the_cursor_stays_on_its_thing_and_its_line_whatever_comes_and_goes() -> None:
    async with show() as (app, _):
        listing = app.listing

        @settings(max_examples=150, deadline=None)
        @given(st.lists(STEP, max_size=12))
        def law(steps: list[tuple[str, list[str] | int]]) -> None:
            listing.show(rows(*KEYS[:30]))
            listing.select("k10")
            for kind, value in steps:
                before, top = listing.row, listing.scroll_y
                line = listing.position - top
                if isinstance(value, list):
                    listing.show(rows(*value))
                    check_shown(before, top, line, value)
                elif kind == "move":
                    listing.action_move(value)
                    if listing.rows:
                        assert 0 <= listing.position - listing.scroll_y < 10
                else:
                    listing.scroll_to(y=value, animate=False, force=True)
                assert 0 <= listing.scroll_y <= max(0, len(listing.rows) - 10)

        def check_shown(before: Row | None, top: float, line: float, keys: list[str]) -> None:
            if before is None or before[0] not in keys:
                # Its thing is gone: the cursor is on another one, which is seen.
                assert listing.position == 0 if not keys else 0 <= listing.position - listing.scroll_y < 10
                return
            assert listing.row == before
            if not 0 <= line < 10:
                return
            after = listing.position - listing.scroll_y
            at_an_end = listing.scroll_y in (0, len(keys) - 10)
            # From the top, what comes pushes it down to the last line, and no further.
            assert after == line or at_an_end or (after == 9 and top == 0)
            assert 0 <= after < 10

        law()


async def test_scrolled_rows_stay_in_place_although_the_cursor_is_elsewhere() -> None:
    async with show() as (app, pilot):
        app.listing.show(rows(*KEYS[:30]))
        app.listing.scroll_to(y=15, animate=False, force=True)

        app.listing.show(rows("new-1", "new-2", "new-3", *KEYS[:30]))
        await pilot.pause()

        assert app.lines[1].split() == ["k15", "thing", "k15", "7"]
        assert app.listing.row == ("k0", "thing k0")


async def test_new_rows_above_the_visible_ones_are_counted_until_seen() -> None:
    async with show() as (app, pilot):
        app.listing.show(rows(*KEYS[4:]))
        await pilot.press("end")
        app.listing.show(rows(*KEYS[2:]), news=True)
        app.listing.show(rows(*KEYS[1:], "below"), news=True)
        assert app.listing.new_above == 3

        app.listing.show(rows(*KEYS[2:], "below"), news=True)
        assert app.listing.new_above == 2

        await pilot.press("home")
        assert app.listing.new_above == 0

        await pilot.press("end")
        app.listing.show(rows(*KEYS, "below"))
        assert app.listing.new_above == 0


async def test_columns_that_depend_on_time_are_drawn_again() -> None:
    amounts = {"k0": "7", "k1": "7"}
    async with show() as (app, pilot):
        app.listing.columns[2] = Column("Amount", lambda row: amounts[row[0]], 6, right=True)
        app.listing.show(rows("k0", "k1"))
        await pilot.pause()

        amounts["k1"] = "8"
        app.listing.tick()
        await pilot.pause()

        assert [line.split()[-1] for line in app.lines[1:3]] == ["7", "8"]


async def test_keys_move_choose_and_mark() -> None:
    async with show() as (app, pilot):
        app.listing.show(rows(*KEYS))
        await pilot.press("j", "down", "k", "pagedown", "G", "home", "enter")
        app.listing.toggle_mark()
        app.listing.toggle_mark()
        await pilot.pause()

        assert [key for key, _ in app.heard] == ["k0", "k1", "k2", "k1", "k10", "k39", "k0", "k1", "k2"]
        assert app.chosen == ["k0"]
        assert app.listing.marks == {"k0", "k1"}
        assert [line.split("  ")[0] for line in app.lines[1:5]] == [" ● k0", " ● k1", "▸", ""]


async def test_marks_of_what_is_gone_are_gone() -> None:
    async with show() as (app, _):
        app.listing.show(rows("a", "b"))
        app.listing.toggle_mark()
        app.listing.toggle_mark()

        app.listing.show(rows("b"))

        assert app.listing.marks == {"b"}


async def test_it_says_whether_a_person_moved_the_cursor() -> None:
    async with show() as (app, pilot):
        app.listing.show(rows("a", "b", "c"))
        await pilot.press("down")
        app.listing.show(rows("a", "c"))
        app.listing.show(rows("new", "a", "c"))
        app.listing.show([])
        await pilot.pause()

        assert app.heard == [("a", True), ("b", True), ("c", False), ("", False)]
        assert app.lines[2] == "  Nothing waits."


async def test_the_mouse_chooses_and_scrolls() -> None:
    async with show() as (app, pilot):
        app.listing.show(rows(*KEYS))
        await pilot.click(Listing, offset=(5, 0))
        await pilot.click(Listing, offset=(5, 4))
        await pilot.click(Listing, offset=(5, 6), times=2)
        app.listing.scroll_to(y=20, animate=False, force=True)
        await pilot.click(Listing, offset=(5, 1))

        assert [key for key, _ in app.heard] == ["k0", "k3", "k5", "k20"]
        assert app.chosen == ["k5"]


@pytest.mark.parametrize("size", [(40, 1), (40, 2), (1, 11), (3, 3), (200, 60)])
async def test_any_size_is_drawn(size: tuple[int, int]) -> None:
    async with show(*size) as (app, pilot):
        app.listing.show(rows(*KEYS))
        await pilot.press("end")

        assert app.listing.row == ("k39", "thing k39")
        assert [cell_len(strip.text) for strip in app.screen._compositor.render_strips()] == [size[0]] * size[1]


async def test_a_terminal_that_becomes_smaller_still_shows_the_cursor() -> None:
    async with show(40, 30) as (app, pilot):
        app.listing.show(rows(*KEYS))
        app.listing.select("k25")

        await pilot.resize_terminal(30, 6)
        await pilot.pause()

        assert [line for line in app.lines if "▸" in line] == ["▸  k25     thing k25       7"]


async def test_ten_thousand_rows_are_drawn_by_asking_only_for_those_that_are_seen() -> None:
    asked: list[str] = []
    listing: Listing[Row] = Listing([Column("Name", lambda row: asked.append(row[0]) or row[0], 9)], lambda row: row[0])
    app = Shown()
    app.listing = listing
    async with app.run_test(size=(40, 11)) as pilot:
        listing.show(rows(*(f"k{number}" for number in range(10_000))))
        await pilot.press("end", "pageup", "home")

        assert {"k0", "k9999"} <= set(asked)
        assert len(asked) < 200


@given(st.text(max_size=60), st.integers(1, 30), st.booleans())
def test_a_cell_is_exactly_as_wide_as_its_column(text: str, width: int, right: bool) -> None:
    text = "".join(letter for letter in text if letter.isprintable())

    assert cell_len(fit(text, width, right=right)) == width


@pytest.mark.parametrize(
    ("text", "right", "shown_as"),
    [
        ("short", False, "short   "),
        ("short", True, "   short"),
        ("as long!", True, "as long!"),
        ("too long!", False, "too lon…"),
        ("漢字漢字漢", False, "漢字漢 …"),
        ("12345678 sat", False, "       …"),
        ("12345678-9abc-4def", False, "1234567…"),
        ("x" * 10_000, True, "xxxxxxx…"),
    ],
)
def test_text_that_does_not_fit_ends_in_an_ellipsis(text: str, right: bool, shown_as: str) -> None:
    assert fit(text, 8, right=right) == shown_as


async def test_an_empty_list_takes_every_key() -> None:
    async with show() as (app, pilot):
        await pilot.press("down", "end", "enter", "pageup")
        app.listing.toggle_mark()

        assert (app.heard, app.chosen, app.listing.row) == ([], [], None)
