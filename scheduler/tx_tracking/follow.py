"""Find out what became of what was sent, and send again what nodes forgot. Promises P2 and P9.

Each chain is looked at by itself, for a bounded time, so a node that is away or slow holds up no other chain. Claims
share the work between schedulers; one that dies delays a look by the time its claim took. Nothing learned here frees
spend (Decision 0028).
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from custody.chains.family import Chain
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError, UpstreamFailed
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.signer.orders import ChainOutcome
from custody.signing.broadcast import hand_over
from scheduler.tx_tracking import evm, evm_settlement, solana, solana_settlement, store
from scheduler.tx_tracking.types import Followed, News, Verdict

log = logger(__name__)
PER_CHAIN = 100
CHAIN_SECONDS = 8.0
AT_ONCE = 8
# How nodes of each family are asked what became of transactions.
LOOKS: Final = {"evm": evm.look, "solana": solana.look}
# How they are asked about payments, which others take to the chain.
SETTLEMENTS: Final = {"x402": evm_settlement.look, "solana_x402": solana_settlement.look}


async def follow(ports: Ports) -> int:
    """Look at what is due on every chain that has a node; gives back how many became final or were seen."""
    chains = [chain for family in LOOKS for chain in ports.chains.all_of(family) if chain.rpc_urls]
    return sum(await asyncio.gather(*(_follow_chain(ports, chain) for chain in chains)))


async def _follow_chain(ports: Ports, chain: Chain) -> int:
    followed = await store.claim(ports.pool, chain.id, PER_CHAIN)
    sent = [one for one in followed if one.kind not in SETTLEMENTS]
    payments = [one for one in followed if one.kind in SETTLEMENTS]
    # Apart from each other, so that what a node does not say of one says nothing of the other.
    return sum(await asyncio.gather(_look(ports, chain, sent), _look(ports, chain, payments)))


async def _look(ports: Ports, chain: Chain, followed: list[Followed]) -> int:
    if not followed:
        return 0
    ask = SETTLEMENTS.get(followed[0].kind, LOOKS[chain.family])
    try:
        async with asyncio.timeout(CHAIN_SECONDS):
            verdicts = await ask(ports.rpc, chain, followed)
            learned = await _tell(ports, followed, verdicts)
            await _send_again(ports, chain, [one for one, v in zip(followed, verdicts, strict=True) if v.forgotten])
    except (UpstreamFailed, TimeoutError) as problem:
        log.warning("could not look", extra={"chain": chain.id, "reason": type(problem).__name__})
        return 0
    except Exception:  # the edge of a chain: what nobody thought of on one of them is no other's trouble
        log.exception("unexpected", extra={"chain": chain.id})
        return 0
    return learned


async def _tell(ports: Ports, followed: Sequence[Followed], verdicts: Sequence[Verdict]) -> int:
    """Tell the signer all the news; of those that share a nonce each is told once."""
    news = {(one.tenant, said.id): said for one, v in zip(followed, verdicts, strict=True) for said in v.news}
    return sum([await _tell_one(ports, tenant, said) for (tenant, _), said in news.items()])


async def _tell_one(ports: Ports, tenant: str, said: News) -> bool:
    message = ChainOutcome(
        tenant,
        said.id,
        said.word,
        block=said.block,
        block_hash=said.block_hash,
        by=said.by,
        fee_paid=str(said.fee) if said.fee is not None else None,
    )
    try:
        await ports.workers.tell(message, Origin(f"follow-{said.id}"))
    except CustodyError as problem:
        # Found again at the next look.
        log.warning("outcome not noted", extra={"tx_id": said.id, "reason": problem.code})
        return False
    return True


async def _send_again(ports: Ports, chain: Chain, forgotten: Sequence[Followed]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def send(one: Followed) -> None:
        async with gate:
            try:
                await hand_over(ports.rpc, chain, one.kind, one.raw, one.hash)
            except UpstreamFailed as problem:
                log.info("not taken again", extra={"tx_id": one.id, "reason": problem.message})

    await asyncio.gather(*(send(one) for one in forgotten))
