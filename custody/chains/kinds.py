"""The kinds of orders as a type: the names that the families of this service list."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal["evm", "typed_data", "evm_message", "x402", "solana", "solana_message", "solana_x402", "bitcoin"]
