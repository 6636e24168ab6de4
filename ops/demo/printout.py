"""The transcript: plain words in columns; bold headings only where a person watches a terminal."""

import os
import textwrap
from typing import TextIO

_WEI = 10**18
_SATOSHIS = 10**8
_DOLLAR = 10**6
_LABEL, _WIDTH = 16, 100


class Printout:
    """Writes the transcript at once, line by line, so that a pipe sees it as it happens."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._bold = ("\033[1m", "\033[0m") if to.isatty() and not os.environ.get("NO_COLOR") else ("", "")

    def title(self, first: str, second: str) -> None:
        """Print what this is."""
        self._write(f"\n{self._strong(first)}\n{second}")

    def heading(self, number: int, text: str) -> None:
        """Begin a step."""
        self._write(f"\n{self._strong(f'{number}. {text}')}")

    def line(self, label: str, text: object) -> None:
        """One thing that is so."""
        first, *rest = textwrap.wrap(str(text), _WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
        self._write(f"   {label:<{_LABEL}}{first}")
        for more in rest:
            self._write(f"   {'':<{_LABEL}}{more}")

    def amount(self, label: str, wei: int, text: str = "") -> None:
        """One amount, in a column of amounts."""
        self._write(f"   {label:<{_LABEL}}{ether(wei):>5} ETH  {text}".rstrip())

    def command(self, text: str) -> None:
        """A command to paste: one line, however long."""
        self._write(f"   {text}")

    def problem(self, text: str) -> None:
        """Something is not as it should be."""
        self._write(f"demo: {text}")

    def _strong(self, text: str) -> str:
        return f"{self._bold[0]}{text}{self._bold[1]}"

    def _write(self, text: str) -> None:
        print(text, file=self._to, flush=True)


def ether(wei: int) -> str:
    """An amount in ETH with at least two decimals, exact."""
    whole, part = divmod(wei, _WEI)
    return f"{whole}.{f'{part:018d}'.rstrip('0'):0<2}"


def usdc(units: int) -> str:
    """Write an amount of USDC with at least two decimals, exact."""
    whole, part = divmod(units, _DOLLAR)
    return f"{whole}.{f'{part:06d}'.rstrip('0'):0<2} USDC"


def bitcoin(satoshis: int) -> str:
    """An amount in BTC, exact."""
    whole, part = divmod(satoshis, _SATOSHIS)
    return f"{whole}.{f'{part:08d}'.rstrip('0'):0<2} BTC"
