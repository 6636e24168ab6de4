"""A kept picture holds nothing that differs from run to run: days, times, ids."""

import html
import re
from pathlib import Path

import pytest

from tests.fixtures.consoles import steady

DIGEST = "00011111" + "ab" * 28
KEPT = sorted((Path(__file__).parent / "__snapshots__").rglob("*.svg"))
DAY = re.compile(r"\b20\d\d-\d\d-\d\d|\b\d\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("22 Nov, 09 Nov", "xx xxx, 09 Nov"),
        (f"digest {DIGEST}.", f"digest {'x' * 64}."),
        (f"{DIGEST[:9]}…{DIGEST[-6:]}", f"{'x' * 9}…{'x' * 6}"),
        ("0x22…, 22a7…", "xxxx…, 22a7…"),
        ("0.0001 to 0x11111…", "0.0001 to 0x11111…"),
        ("at 2026-11-22 10:15:30 UTC", "at xxxx-xx-xx xx:xx:xx UTC"),
        ("11-22 10:15:30", "xx-xx xx:xx:xx"),
        ("evm:31337:0x22a7 & <payer>", "evm:31337:xxxxxx & <payer>"),
    ],
    ids=["day", "whole", "clipped", "address", "by chance", "time", "without its year", "part"],
)
def test_random_values_are_hidden_and_nothing_else(said: str, kept: str) -> None:
    drawn = html.escape(said).replace(" ", "&#160;")

    hidden = steady(f"<text x='1'>{drawn}</text>", ["22 Nov", DIGEST, "2026-11-22 10:15:30 UTC", "0x22a7"])

    assert html.unescape(hidden).replace("\xa0", " ") == f"<text x='1'>{kept}</text>"


def test_no_kept_picture_names_a_day() -> None:
    dated = [file.name for file in KEPT if DAY.search(html.unescape(file.read_text()).replace("\xa0", " "))]

    assert KEPT
    assert dated == []
