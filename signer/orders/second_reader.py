"""The moment a second reader looks: after the order was checked, and before anything is judged, kept or signed.

A plain transaction has none: its bytes are built here from fields.
"""

from functools import partial

from custody.kit.refs import AgentRef
from signer.orders.kind import AnyKind, Draft
from signer.signing_state import SigningState


async def confirm(signer: SigningState, ref: AgentRef, kind: AnyKind, draft: Draft) -> None:
    """Have the order read again where its kind has a second reader; raises Invalid where the two disagree."""
    reader = kind.second_reader
    if reader is None:
        return
    await reader.load()
    await signer.throttle.run_in_thread(ref.tenant, ref.agent, partial(reader.confirm, draft))
