"""The filters of transactions: as a person types them, and as the API takes them. Pure."""

from collections.abc import Callable
from datetime import datetime

from words.texts import filters

HINT = "/ filters: status:failed chain:1 ref:order-7 to:0x… hash:0x… since:7d"


def fields(now: Callable[[], datetime]) -> dict[str, filters.Reader]:
    """Each word before a colon, with how its value is read."""
    return {
        "status": filters.one_of(
            "status",
            "status",
            waiting="pending_approval",
            refused="rejected",
            rejected="rejected",
            signed="signed",
            sent="broadcast",
            broadcast="broadcast",
            confirmed="confirmed",
            failed="failed",
        ),
        "chain": filters.exactly("chainId"),
        "kind": filters.one_of(
            "kind",
            "kind",
            evm="evm",
            document="typed_data",
            typed_data="typed_data",
            solana="solana",
            bitcoin="bitcoin",
            evm_message="evm_message",
            solana_message="solana_message",
            x402="x402",
            solana_x402="solana_x402",
        ),
        "ref": filters.exactly("referenceId"),
        "hash": filters.exactly("txHash"),
        "id": filters.exactly("txId"),
        "to": filters.exactly("toAddress"),
        "since": filters.time("since", "from", now),
        "until": filters.time("until", "to", now, end=True),
    }
