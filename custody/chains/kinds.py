"""The kinds of orders as a type: one of the names that the families list."""

from typing import TYPE_CHECKING, Literal

from custody.chains.families import KINDS

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[KINDS]
