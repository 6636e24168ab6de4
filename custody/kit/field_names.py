"""The names that viem, ethers, web3.py, nodes and wallets give to the fields sent here, by the struct that has them.

No sentence tells a caller to drop a field: without it something else could be signed. It names the field that means the
same, or says why there is none.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Meant(NamedTuple):
    """The field that takes the same value, and what else there is to say of it."""

    field: str
    note: str = ""

    def __str__(self) -> str:
        return f'call it "{self.field}"' + (f", {self.note}" if self.note else "")


type Names = Mapping[str, Meant | str]


def _each(names: str, meaning: Meant | str) -> dict[str, Meant | str]:
    return dict.fromkeys(names.split(), meaning)


_TRANSFERS: Final = "POST /vault/{agentId}/actions/transfer"
_ANY: Final[Names] = {
    **_each("reference externalId clientReference clientOrderId", Meant("referenceId")),
    **_each("idempotencyKey requestId", "it is a header, Idempotency-Key"),
    **_each(
        "from account sender fromAddress wallet walletId walletAddress signer agentId owner",
        "the agent in the path signs with its own wallet, and no other is named",
    ),
}
_EVM_CHAIN: Final[Names] = _each("chain network networkId eip155", Meant("chainId", "a number such as 8453"))
_EVM_PARTS: Final[Names] = {
    **_each("gas", Meant("gasLimit", "as a decimal string")),
    **_each("input calldata encodedData", Meant("data")),
    **_each("amount amountWei valueWei wei", Meant("value", "in wei")),
    **_each("recipient destination toAddress receiver", Meant("to")),
    **_each("address contract contractAddress target", Meant("to", "which is also the contract that is called")),
    "dataSuffix": 'append its bytes to "data"',
    **_each("abi args functionName method params", 'the call goes into "data" as it is encoded'),
    **_each(
        "token tokenAddress asset", f"a token is paid by {_TRANSFERS}, or by a call of its contract in `to` and `data`"
    ),
    **_each(
        "type txType transactionType", "the chain says whether a transaction has type 2 or 0, and no other is signed"
    ),
    "accessList": "no access list is signed here",
    **_each(
        "maxFeePerBlobGas blobs blobVersionedHashes blobGasLimit sidecars kzg kzgWrapperVersion",
        "no blobs are signed here",
    ),
    **_each("authorizationList authorizations", "no EIP-7702 authorization is signed here"),
}
_EVM_FEES: Final[Names] = {
    **_each(
        "gasPrice maxFee gasFeeCap feeCap", Meant("maxFeePerGas", "in wei; on a chain without EIP-1559 it is the price")
    ),
    **_each("maxPriorityFee priorityFee priorityFeePerGas gasTipCap tip", Meant("maxPriorityFeePerGas", "in wei")),
}
_FEES_CHOSEN: Final[Names] = _each(
    "gas gasLimit gasPrice maxFee maxFeePerGas maxPriorityFee maxPriorityFeePerGas priorityFee fee nonce",
    "gas, fees and nonce are chosen here; POST /vault/{agentId}/sign takes your own",
)
_SIGNED: Final = _each(
    "raw rawTransaction signedTransaction serializedTransaction hash v r s yParity signature",
    "a transaction is sent as its fields, and signed here",
)
_FORMS: Final = 'text goes into "message" and bytes go into "raw", and no other word says how to read them'
_MESSAGES: Final[Names] = {
    **_ANY,
    **_each("text content msg plaintext messageText", Meant("message")),
    **_each("payload data body bytes messageBytes", 'text goes into "message", and bytes go into "raw"'),
    **_each("encoding display format", _FORMS),
    **_each("address signWith publicKey", _ANY["from"]),
    **_each("chainType family walletType", 'it is "chainFamily" here, evm or solana'),
    **_each("caip2", 'the number of the chain goes into "chainId"'),
    **_each("hash digest messageHash", "hashes are not signed; send what was hashed"),
    **_each("type method params parameters", "the route says what is signed; what `params` hold are fields here"),
    **_each(
        "domain types primaryType typedData statement uri version nonce issuedAt expirationTime notBefore requestId "
        "resources",
        'a sign-in message is sent whole, as "message"; typed data has POST /vault/{agentId}/sign-typed-data',
    ),
    **_each("transaction tx", "transactions have routes of their own"),
    **_each("broadcast", "nothing is sent to a node; the answer is the signature"),
}
_SOLANA_INSIDE: Final = "it stands in the serialized transaction"
_ACCOUNT: Final[Names] = {
    **_each("name label", Meant("displayName")),
    **_each("wallets agents agentIds", Meant("walletIds", "ids of agents")),
    **_each("owners ownerIds", Meant("ownerUserIds")),
    **_each("signers signerIds", Meant("additionalSignerIds")),
    **_each("policies policyIds", Meant("signerPolicyIds")),
}
_SEALED: Final[Names] = {
    **_each("privateKey key secret seed mnemonic", "no key is sent in the open; docs/wallets.md says how it is sealed"),
    **_each("sessionId", Meant("importSessionId")),
    **_each("nonce", Meant("iv")),
    **_each("authTag mac", Meant("tag")),
    **_each("epk publicKey ephemeralKey", Meant("ephemeralPublicKey")),
    **_each("encryptedKey sealed data", Meant("ciphertext")),
}

FIELD_NAMES: Final[Mapping[str, Names]] = {
    "EvmOrder": {**_ANY, **_EVM_CHAIN, **_EVM_PARTS, **_EVM_FEES, **_SIGNED},
    "TransferOrder": {
        **_ANY,
        **_EVM_CHAIN,
        **_FEES_CHOSEN,
        **_each("amount amountRaw quantity", Meant("value", "in wei, or in the smallest unit of the token")),
        **_each("recipient destination toAddress receiver address", Meant("to")),
        **_each("asset tokenAddress contract contractAddress erc20 currency", Meant("token")),
        **_each("decimals", "amounts are in the smallest unit already"),
        **_each("data input calldata memo", "a transfer has no calldata; POST /vault/{agentId}/sign takes it"),
        **_each("sponsored gasless paymaster", Meant("sponsor")),
    },
    "CallsOrder": {
        **_ANY,
        **_EVM_CHAIN,
        **_FEES_CHOSEN,
        **_each("transactions txs batch operations userOperations", Meant("calls")),
        **_each("id", Meant("referenceId")),
        **_each("to value data input", 'they belong to each entry of "calls"'),
        **_each("atomic atomicRequired forceAtomic", "each call is a transaction of its own, and none undoes another"),
        **_each("capabilities version", "of EIP-5792 only the calls are taken"),
    },
    "OneCall": {
        **_EVM_PARTS,
        **_each("from account sender", "the agent in the path signs with its own wallet, and no other is named"),
        **_each("chain chainId", 'all calls are of one chain, "chainId" beside "calls"'),
        **_each(
            "gasPrice maxFeePerGas maxPriorityFeePerGas nonce",
            "fees and nonces of a batch are chosen here; POST /vault/{agentId}/sign takes your own",
        ),
    },
    "ReplacementFees": {
        **_EVM_FEES,
        **_each(
            "to value data input nonce gas gasLimit chain chainId from",
            "a replacement is the same payment with the same nonce and gas limit; only fees are named",
        ),
    },
    "PaymentBody": {
        **_ANY,
        **_each("paymentRequired payment_required required accepts requirements header", Meant("demand", "all of it")),
        **_each("url uri address endpoint", Meant("resource")),
        **_each("amount maxAmount asset payTo network scheme", "the demand says it, and the rules limit it"),
    },
    "TypedDataBody": {
        **_ANY,
        **_each(
            "typedData typed_data data document payload",
            'its "domain", "types", "primaryType" and "message" are fields here',
        ),
        **_each("chain chainId version", "the domain says it"),
        **_each("struct contents", Meant("message")),
        **_each("broadcast to gas", "nothing is sent to a node; the answer is the signature"),
    },
    "SolanaOrder": {
        **_ANY,
        **_each(
            "tx serializedTransaction transactionBase64 encodedTransaction rawTransaction",
            Meant("transaction", "in base64"),
        ),
        **_each("message", 'give "transaction", the serialized transaction in base64 with its signature slots'),
        **_each("amount lamports", Meant("value", "as the transaction has it")),
        **_each("recipient destination toAddress receiver toPubkey", Meant("to")),
        **_each("chain cluster network", Meant("chainId", "101 for mainnet, 102 for devnet")),
        **_each("encoding", "a transaction comes in base64"),
        **_each(
            "instructions recentBlockhash blockhash feePayer lastValidBlockHeight nonceInfo memo mint token",
            _SOLANA_INSIDE,
        ),
        **_each("signatures signers", "other signers sign the transaction before it is sent here"),
        **_each(
            "options skipPreflight preflightCommitment commitment maxRetries minContextSlot",
            "how a node takes the transaction is the deployment's",
        ),
    },
    "EvmMessageOrder": {
        **_MESSAGES,
        **_EVM_CHAIN,
        **_each("hexstr hex primitive rawMessage messageHex", Meant("raw", "0x and hex for the EVM wallet")),
        **_each("base64", 'give the same bytes as 0x and hex, as "raw"'),
        **_each("prefix hashFunction", "the message is hashed here, under the prefix of EIP-191"),
    },
    "SolanaMessageOrder": {
        **_MESSAGES,
        **_each("chain cluster network networkId", Meant("chainId", "101 for mainnet, 102 for devnet")),
        **_each("base64 rawMessage messageBase64", Meant("raw", "standard base64 for the Solana wallet")),
        **_each("hexstr hex messageHex base58 primitive", 'give the same bytes in standard base64, as "raw"'),
        **_each("prefix hashFunction", "the bytes are signed as they are, and nothing is put before them"),
    },
    "PsbtOrder": {
        **_ANY,
        **_each("psbt tx base64 unsignedPsbt transaction", Meant("psbtBase64", "in base64")),
        **_each("psbtHex hex", 'give the same bytes in base64, as "psbtBase64"'),
        **_each("autoFinalize autoFinalized finalise", Meant("finalize")),
        **_each(
            "scope address path derivationPath network addressType account index publicKey walletAddress",
            'say it by "walletScope", such as "bitcoin:mainnet:p2wpkh:0:0:0"',
        ),
        **_each(
            "toSignInputs inputsToSign signInputs inputs signInputIndexes sighash sighashType sighashTypes",
            'every input of the address of "walletScope" is signed, by the sighash that the PSBT names',
        ),
        **_each("broadcast", "a PSBT is never broadcast here"),
        **_each("to value amount outputs feeRate fee", "what is paid is read from the PSBT"),
    },
    **dict.fromkeys(
        (
            "EvmQuestion",
            "TypedDataSimulation",
            "TransferQuestion",
            "SolanaQuestion",
            "PsbtQuestion",
            "MessageSimulation",
        ),
        _each("order body transaction psbt params", Meant("request")),
    ),
    "NewIntentBody": {
        **_each("type kind intent", Meant("intentType")),
        **_each("agent wallet", Meant("agentId")),
        **_each("params request body action data order", Meant("payload")),
        **_each("ttl timeout", Meant("ttlSeconds", "a number of seconds")),
        **_each("expiry deadline", Meant("expiresAt")),
        **_each("to value amount token chainId", 'they belong into "payload"'),
    },
    "NewAccountBody": _ACCOUNT,
    "AccountChangeBody": _ACCOUNT,
    **dict.fromkeys(("NewAggregationBody", "AggregationChangeBody"), _each("name label", Meant("displayName"))),
    "WalletConfiguration": {
        **_each("chain family type", Meant("chainType")),
        **_each("agentId id wallet", Meant("walletId")),
        **_each("displayName label", Meant("name")),
    },
    "DecisionBody": _each("comment note message", Meant("reason")),
    "FailBody": _each("result error reason", Meant("executionResult", "an object")),
    "ApproveBody": _each("reason note message", Meant("comment")),
    "DenyBody": _each("comment note message", Meant("reason")),
    **dict.fromkeys(("ImportBegun", "UserImportBody"), _each("chainType family network", Meant("chain"))),
    "SealedKey": _SEALED,
    "SealedUserKey": _SEALED,
}
