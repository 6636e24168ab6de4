"""The price of a call, as its route says it: one sum for each call, or a price for each token that an API counts.

Pure. A price for tokens needs a most that is charged first: what an answer says comes when the money is gone.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import described

MOST_MICRO_USD: Final = 2**63 - 1
# More tokens than any answer has; whoever says more is not believed.
MOST_TOKENS: Final = 10**12
_MILLION: Final = 10**6
_UNIT: Final = "millionths of a dollar"
MicroUsd = Annotated[int, Meta(ge=0, le=MOST_MICRO_USD)]
_Price = Annotated[int, Meta(ge=0, le=10**12)]
_Place = Annotated[str, Meta(max_length=256, pattern=r"^[\x20-\x7e]*\Z")]
Tokens = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The tokens of one call; none is counted twice."""

    input: Tokens = 0
    output: Tokens = 0
    # Read from the API's own cache, and written to it.
    cached: Tokens = 0
    cache_write: Tokens = 0


class TokenPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The place of an answer's token counts, and what a million tokens of each sort cost."""

    form: Annotated[
        Literal["openai", "anthropic", "pointers"],
        described("The API whose answers these are; with `pointers`, their places are given."),
    ]
    input: Annotated[_Price, described("Price of a million tokens of input.", unit=_UNIT)]
    output: Annotated[_Price, described("Price of a million tokens of output.", unit=_UNIT)]
    cached: Annotated[
        _Price | None, described("Price of a million tokens read from a cache; null: as input.", unit=_UNIT)
    ] = None
    cache_write: Annotated[
        _Price | None, described("Price of a million tokens written to a cache; null: twice that of input.", unit=_UNIT)
    ] = None
    input_at: Annotated[_Place, described("With `pointers`: the place of the input's count, such as `/usage/in`.")] = ""
    output_at: Annotated[_Place, described("With `pointers`: the place of the output's count.")] = ""

    def cost(self, counts: Counts) -> int:
        """Price the tokens, rounded up to a millionth of a dollar."""
        cached = self.input if self.cached is None else self.cached
        written = 2 * self.input if self.cache_write is None else self.cache_write
        total = counts.input * self.input + counts.output * self.output
        total += counts.cached * cached + counts.cache_write * written
        return -(-total // _MILLION)
