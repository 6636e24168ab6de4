"""PSBTs as they are asked for."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import ReferenceId, WalletScopeText

# The order travels twice, in the request that a signer of the agent signed too, and both are in one frame.
MAX_PSBT_CHARACTERS: Final = 400_000


class PsbtOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A PSBT whose inputs of one address are signed. Payments are read from its bytes, and it is never broadcast."""

    wallet_scope: Annotated[
        WalletScopeText,
        described("The address that signs: `bitcoin:<network>:<type>:<account>:<change>:<index>`."),
    ]
    psbt_base64: Annotated[
        str,
        Meta(min_length=1, max_length=MAX_PSBT_CHARACTERS),
        described("The PSBT, version 0, in base64."),
    ]
    finalize: Annotated[
        bool, described("True to finish the transaction too, if every input is this wallet's and was signed.")
    ] = False
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None
