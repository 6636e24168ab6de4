"""Ask a node what became of payments by x402 of EVM wallets, all of one chain at once.

Four rounds of questions at most, whatever the number of payments: the block at final depth and whether each nonce is
used there; then, of those that are, the logs; then the transactions that could be meant; then the blocks of the logs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from custody.chains.family import Chain
from custody.chains.rpc import Query, Rpc
from scheduler.tx_tracking import evm_settlement_rules as rules
from scheduler.tx_tracking.evm import blocks_of, final_height_of
from scheduler.tx_tracking.evm_settlement_rules import Claim, Log, Moment, Seen
from scheduler.tx_tracking.types import NOTHING, Followed, Verdict

# Blocks in which a log is looked for, from final depth back: nodes refuse questions over many more.
LOG_BLOCKS: Final = 2_000
# Payments whose logs one look asks for, and transactions that it asks for besides; the others come with a later one.
MAX_WITH_LOGS: Final = 50
MAX_TRANSACTIONS: Final = 200


async def look(rpc: Rpc, chain: Chain, followed: Sequence[Followed]) -> list[Verdict]:
    """Find what became of each; raises RpcUnavailable when the node cannot be asked at all."""
    claims = {one.id: claim for one in followed if (claim := rules.claim_of(one.raw, one.address)) is not None}
    height = final_height_of(chain, *await rpc.each(chain.rpc_urls, [("eth_chainId", []), ("eth_blockNumber", [])]))
    if not claims or height < 0:
        return [NOTHING] * len(followed)
    at, used = await _states(rpc, chain, claims, height)
    if at is None:
        return [NOTHING] * len(followed)
    taken = [key for key, is_used in used.items() if is_used]
    used |= dict.fromkeys(taken[MAX_WITH_LOGS:])
    asked = {key: claims[key] for key in taken[:MAX_WITH_LOGS]}
    logs = await _logs(rpc, chain, asked, height)
    named = await _find_nonces(rpc, chain, claims, logs)
    return [
        rules.verdict(one, claims[one.id], at, Seen(used[one.id], logs.get(one.id), named.get(one.id, {})))
        if one.id in claims
        else NOTHING
        for one in followed
    ]


async def _states(
    rpc: Rpc, chain: Chain, claims: Mapping[str, Claim], height: int
) -> tuple[Moment | None, dict[str, bool | None]]:
    questions: list[Query] = [("eth_getBlockByNumber", [hex(height), False])]
    for claim in claims.values():
        to, data = rules.state_question(claim)
        questions.append(("eth_call", [{"to": to, "data": data}, hex(height)]))
    block, *answers = await rpc.each(chain.rpc_urls, questions)
    used = {key: rules.used_in(claims[key], answer) for key, answer in zip(claims, answers, strict=True)}
    return rules.moment_in(block, height), used


async def _logs(rpc: Rpc, chain: Chain, asked: Mapping[str, Claim], height: int) -> dict[str, tuple[Log, ...] | None]:
    """Read the logs of each that the chain still has; None where an answer is missing or makes no sense."""
    first = max(0, height - LOG_BLOCKS + 1)
    places = [(key, one) for key, claim in asked.items() for one in rules.log_questions(claim, first, height)]
    answers = await rpc.each(chain.rpc_urls, [("eth_getLogs", [one]) for _, one in places])
    found: dict[str, tuple[Log, ...] | None] = {}
    for (key, question), answer in zip(places, answers, strict=True):
        logs, before = rules.logs_in(asked[key], question, answer), found.get(key, ())
        found[key] = None if logs is None or before is None else (*before, *logs)
    hashes = await blocks_of(rpc, chain, list({log.block for logs in found.values() for log in logs or ()}))
    return {
        key: logs if logs is not None and all(hashes.get(log.block) == log.block_hash for log in logs) else None
        for key, logs in found.items()
    }


async def _find_nonces(
    rpc: Rpc, chain: Chain, claims: Mapping[str, Claim], logs: Mapping[str, Sequence[Log] | None]
) -> dict[str, dict[str, bool]]:
    """Say of each payment which of the transactions that may have taken it have its nonce in them."""
    wanted = {key: rules.candidates(claims[key], found or ()) for key, found in logs.items()}
    hashes = list(dict.fromkeys(hash_ for each in wanted.values() for hash_ in each))[:MAX_TRANSACTIONS]
    answers: list[Any] = await rpc.each(chain.rpc_urls, [("eth_getTransactionByHash", [hash_]) for hash_ in hashes])
    found = dict(zip(hashes, answers, strict=True))
    return {
        key: {hash_: rules.names_nonce(claims[key], hash_, found.get(hash_)) for hash_ in each}
        for key, each in wanted.items()
    }
