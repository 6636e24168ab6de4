"""Published typed data that none of our lists names, with values of the right types."""

from typing import Any

CONTRACT = "0x" + "2c" * 20
SOMEBODY = "0x" + "3d" * 20
_WORD = "0x" + "01" * 32
_LOCK = {"lockTag": "0x" + "01" * 12, "token": SOMEBODY, "amount": "5"}
_CALL = {"to": SOMEBODY, "value": "5", "data": "0x"}

# Each type string as published (fields of the primary type, then of those that it holds), and a value for each field.
UNKNOWN: dict[str, tuple[dict[str, str], tuple[Any, ...]]] = {
    # safe-global/safe-modules, modules/4337/contracts/Safe4337Module.sol 0.3.0.
    "SafeOp": (
        {
            "SafeOp": "address safe,uint256 nonce,bytes initCode,bytes callData,uint128 verificationGasLimit,"
            "uint128 callGasLimit,uint256 preVerificationGas,uint128 maxPriorityFeePerGas,uint128 maxFeePerGas,"
            "bytes paymasterAndData,uint48 validAfter,uint48 validUntil,address entryPoint"
        },
        (SOMEBODY, 0, "0x", "0x01", 1, 1, 1, 1, 1, "0x", 0, 0, SOMEBODY),
    ),
    # Uniswap/the-compact, src/types/EIP712Types.sol.
    "Compact": (
        {
            "Compact": "address arbiter,address sponsor,uint256 nonce,uint256 expires,bytes12 lockTag,address token,"
            "uint256 amount"
        },
        (SOMEBODY, SOMEBODY, 0, 9, "0x" + "01" * 12, SOMEBODY, "5"),
    ),
    "BatchCompact": (
        {
            "BatchCompact": "address arbiter,address sponsor,uint256 nonce,uint256 expires,Lock[] commitments",
            "Lock": "bytes12 lockTag,address token,uint256 amount",
        },
        (SOMEBODY, SOMEBODY, 0, 9, [_LOCK]),
    ),
    # dydxprotocol/dydx-v3-python, dydx3/eth_signing/onboarding_action.py: the trading key is derived from it.
    "dYdX on a test network": ({"dYdX": "string action"}, ("dYdX STARK Key",)),
    "dYdX": ({"dYdX": "string action,string onlySignOn"}, ("dYdX STARK Key", "https://trade.dydx.exchange")),
    # Loopring/protocols, contracts/core/impl/libtransactions/AccountUpdateTransaction.sol.
    "AccountUpdate": (
        {
            "AccountUpdate": "address owner,uint32 accountID,uint16 feeTokenID,uint96 maxFee,uint256 publicKey,"
            "uint32 validUntil,uint32 nonce"
        },
        (SOMEBODY, 1, 0, 1, "5", 9, 0),
    ),
    # AmbireTech/ambire-common, contracts/AmbireAccount.sol.
    "AmbireExecuteAccountOp": (
        {
            "AmbireExecuteAccountOp": "address account,uint256 chainId,uint256 nonce,Transaction[] calls,bytes32 hash",
            "Transaction": "address to,uint256 value,bytes data",
        },
        (SOMEBODY, 1, 0, [_CALL], _WORD),
    ),
    # farcasterxyz/contracts, src/KeyGateway.sol.
    "Add": (
        {
            "Add": "address owner,uint32 keyType,bytes key,uint8 metadataType,bytes metadata,uint256 nonce,"
            "uint256 deadline"
        },
        (SOMEBODY, 1, "0x01", 1, "0x", 0, 9),
    ),
    "UserOp": ({"UserOp": "address sender,uint256 nonce,bytes callData"}, (SOMEBODY, 0, "0x01")),
    "Tx": ({"Tx": "address to,uint256 value,bytes data,uint256 nonce"}, (SOMEBODY, "5", "0x", 0)),
    "Call": ({"Call": "address target,uint256 value,bytes data"}, (SOMEBODY, "5", "0x")),
    "Claim": ({"Claim": "address account,address to,uint256 amount"}, (SOMEBODY, SOMEBODY, "5")),
    "Burn": ({"Burn": "address from,uint256 amount,uint256 nonce"}, (SOMEBODY, "5", 0)),
    "Unstake": ({"Unstake": "address account,uint256 amount,address to"}, (SOMEBODY, "5", SOMEBODY)),
    "Release": ({"Release": "uint256 escrowId,address to"}, (1, SOMEBODY)),
    "a permit in another order": (
        {"Grant": "uint256 deadline,uint256 nonce,uint256 value,address spender,address owner"},
        (9, 0, "5", SOMEBODY, SOMEBODY),
    ),
    "a permit with other words": (
        {"Grant": "address holder,address taker,uint256 amount,uint256 number,uint256 until"},
        (SOMEBODY, SOMEBODY, "5", 0, 9),
    ),
    # Governance and sign-in grant something too: OpenZeppelin/openzeppelin-contracts, governance/Governor.sol.
    "Ballot": ({"Ballot": "uint256 proposalId,uint8 support,address voter,uint256 nonce"}, (1, 1, SOMEBODY, 0)),
    "Login": ({"Login": "address account,string statement"}, (SOMEBODY, "hi")),
}


def document(name: str, domain: dict[str, Any]) -> dict[str, Any]:
    """One of them as it is sent."""
    types, values = UNKNOWN[name]
    structs = {
        struct: [dict(zip(("type", "name"), field.split(" "), strict=True)) for field in fields.split(",")]
        for struct, fields in types.items()
    }
    primary = next(iter(types))
    value = dict(zip((field["name"] for field in structs[primary]), values, strict=True))
    return {"domain": domain, "types": structs, "primaryType": primary, "value": value}
