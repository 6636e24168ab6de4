"""An address as a QR code, for a telephone's camera."""

from typing import Final

import segno
from textual.content import Content, Span

from console.widgets.plain_text import PlainText

# Four modules of nothing around it, as ISO 18004 wants: without them many cameras find no code.
QUIET_ZONE: Final = 4
# By upper and lower half: two modules stand in one cell, so that they are square.
_HALVES: Final = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
# In every theme: what is dark on a dark ground, or turned round, is read by few.
_STYLE: Final = "#000000 on #ffffff"


class Qr(PlainText):
    """Shows an address; its size is in `cells`, nothing where it is too long to be shown."""

    DEFAULT_CSS = "Qr { width: auto; height: auto; text-wrap: nowrap; }"

    def __init__(self, **options: str) -> None:
        super().__init__("", **options)
        self.cells = (0, 0)

    def show(self, address: str) -> None:
        """Show this address."""
        lines = qr_lines(address) if address else []
        self.cells = (len(lines[0]), len(lines)) if lines else (0, 0)
        text = "\n".join(lines)
        self.update(Content(text, [Span(0, len(text), _STYLE)]))


def qr_lines(address: str) -> list[str]:
    """The lines of the code; none for what fits into none."""
    try:
        code = segno.make_qr(address, error="l")
    except ValueError:
        return []
    rows = [list(row) for row in code.matrix_iter(border=QUIET_ZONE)]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    return [
        "".join(_HALVES[bool(upper), bool(lower)] for upper, lower in zip(rows[row], rows[row + 1], strict=True))
        for row in range(0, len(rows), 2)
    ]
