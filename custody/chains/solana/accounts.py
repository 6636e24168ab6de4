"""The owner of a token account: an owner, a mint and a program have exactly one associated account."""

from collections.abc import Iterable
from functools import lru_cache

from solders.pubkey import Pubkey
from solders.token.associated import get_associated_token_address

from custody.chains.types import Account


class TokenAccount(Account, frozen=True):
    """An account that holds tokens of one mint of one program."""

    mint: str
    program: str

    def owner_among(self, addresses: Iterable[str]) -> str | None:
        """The address whose associated account it is; some 25 microseconds for each that is tried first."""
        for owner in addresses:
            if _associated_account(owner, self.mint, self.program) == self.address:
                return owner
        return None


@lru_cache(maxsize=4_096)
def _associated_account(owner: str, mint: str, program: str) -> str:
    keys = Pubkey.from_string(owner), Pubkey.from_string(mint), Pubkey.from_string(program)
    return str(get_associated_token_address(*keys))
