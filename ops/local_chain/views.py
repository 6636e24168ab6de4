"""The JSON of the local chain's transactions, receipts and blocks."""

from typing import Any

from ops.local_chain.ledger import CHAIN_ID, Mined

_NO_BLOOM = "0x" + "00" * 256
_NO_UNCLES = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
_NOWHERE = {"blockHash": None, "blockNumber": None, "transactionIndex": None}


def transaction(signed: Any, mined: Mined | None) -> dict[str, Any]:
    """A transaction; `mined` is None while it waits."""
    return {
        **(_NOWHERE if mined is None else _place(mined)),
        **_dynamic_fields(signed),
        "hash": hex_of(signed.hash),
        "type": hex(_type(signed)),
        "chainId": hex(CHAIN_ID),
        "nonce": hex(signed.nonce),
        "from": hex_of(signed.sender),
        "to": hex_of(signed.to) if signed.to else None,
        "value": hex(signed.value),
        "gas": hex(signed.gas),
        "gasPrice": hex(signed.max_fee_per_gas if mined is None else _paid_price(mined)),
        "input": hex_of(signed.data),
        "r": hex(signed.r),
        "s": hex(signed.s),
    }


def receipt(mined: Mined) -> dict[str, Any]:
    """Write what came of a transaction."""
    signed, header = mined.transaction, mined.header
    return {
        **_place(mined),
        "transactionHash": hex_of(signed.hash),
        "from": hex_of(signed.sender),
        "to": hex_of(signed.to) if signed.to else None,
        "contractAddress": hex_of(mined.contract) if mined.contract else None,
        "status": hex(mined.succeeded),
        "gasUsed": hex(header.gas_used),
        "cumulativeGasUsed": hex(header.gas_used),
        "effectiveGasPrice": hex(_paid_price(mined)),
        "type": hex(_type(signed)),
        "logsBloom": hex_of(mined.receipt.bloom.to_bytes(256)),
        "logs": [_log(mined, index, log) for index, log in enumerate(mined.receipt.logs)],
    }


def block(header: Any, transactions: list[Any]) -> dict[str, Any]:
    """A block with its transactions or their hashes."""
    return {
        "number": hex(header.block_number),
        "hash": hex_of(header.hash),
        "parentHash": hex_of(header.parent_hash),
        "timestamp": hex(header.timestamp),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "baseFeePerGas": hex(header.base_fee_per_gas),
        "miner": hex_of(header.coinbase),
        "stateRoot": hex_of(header.state_root),
        "receiptsRoot": hex_of(header.receipt_root),
        "transactionsRoot": hex_of(header.transaction_root),
        "mixHash": hex_of(header.mix_hash),
        "nonce": hex_of(header.nonce),
        "extraData": hex_of(header.extra_data),
        "difficulty": "0x0",
        "size": "0x0",
        "sha3Uncles": _NO_UNCLES,
        "logsBloom": _NO_BLOOM,
        "uncles": [],
        "transactions": transactions,
    }


def hex_of(content: bytes) -> str:
    """Bytes as JSON-RPC writes them."""
    return "0x" + bytes(content).hex()


def _log(mined: Mined, index: int, log: Any) -> dict[str, Any]:
    return {
        **_place(mined),
        "transactionHash": hex_of(mined.transaction.hash),
        "address": hex_of(log.address),
        "topics": [hex_of(topic.to_bytes(32)) for topic in log.topics],
        "data": hex_of(log.data),
        "logIndex": hex(index),
        "removed": False,
    }


def _place(mined: Mined) -> dict[str, str]:
    number, hash_ = mined.header.block_number, mined.header.hash
    return {"blockHash": hex_of(hash_), "blockNumber": hex(number), "transactionIndex": "0x0"}


def _dynamic_fields(signed: Any) -> dict[str, Any]:
    if not _type(signed):
        return {"v": hex(signed.v)}
    return {
        "maxFeePerGas": hex(signed.max_fee_per_gas),
        "maxPriorityFeePerGas": hex(signed.max_priority_fee_per_gas),
        "accessList": [],
        "yParity": hex(signed.y_parity),
        "v": hex(signed.y_parity),
    }


def _type(signed: Any) -> int:
    return int(getattr(signed, "type_id", None) or 0)


def _paid_price(mined: Mined) -> int:
    signed, base_fee = mined.transaction, mined.header.base_fee_per_gas
    return int(min(signed.max_fee_per_gas, base_fee + signed.max_priority_fee_per_gas))
