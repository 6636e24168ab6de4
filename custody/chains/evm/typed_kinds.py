"""The kinds of typed data that are known by their whole type string, and what a signature over each lets others do.

`READERS` has a line for each kind that is read, `CALLS` one for each that holds a call, `WITNESSES` one for each that
Permit2 may carry beside a transfer. `UNREAD` are the kinds that give power in ways that are not read, `HARMLESS` those
that move and grant nothing. Which stands where, and why, for people: docs/orders.md.

A reader gives nothing back for what it cannot vouch for; the whole document is unread then. Where a signature lets
others take up to an amount, the amount counts. Where anybody may fill an order, it is paid to the contract that swaps.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from custody.chains.evm.address import ZERO_ADDRESS, BadAddress, parse_address
from custody.chains.evm.calldata import decode
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_data import Document
from custody.chains.types import UNLIMITED, Call, Effect
from custody.kit.shapes import MAX_UINT256

type Effects = tuple[Effect, ...]
# The message's values were fitted to the very type string that selects the reader, so their types are known.
type Message = dict[str, Any]
type Reader = Callable[[Document, Message, str], Effects | None]
# What a document that holds a call does, and the calls that a contract-allowlist has to know.
type Called = tuple[Effects, tuple[Call, ...]]

# cowprotocol/contracts: GPv2Settlement, the same on every chain.
_COW = frozenset({"0x9008d19f58aabd9ed0d60971565aa8510560ab41"})
# 0xProject/protocol, packages/contract-addresses: the exchange proxy; the second is Optimism's, the third Fantom's.
_ZERO_EX = frozenset(
    {
        "0xdef1c0ded9bec7f1a1670819833240f027b25eff",
        "0xdef1abe32c034e558cdd535791643c58a13acc10",
        "0xdef189deaef76e379df891899eb5a00a94cbc250",
    }
)
# ProjectOpenSea/seaport, README: 1.1, 1.2, 1.4, 1.5 and 1.6.
_SEAPORT = frozenset(
    {
        "0x00000000006c3852cbef3e08e8df289169ede581",
        "0x00000000000006c7676171937c444f6bde3d6282",
        "0x00000000000001ad428e4906ae43d8f9852d0dd6",
        "0x00000000000000adc04c56bf30ac9d3c0aaf14dc",
        "0x0000000000000068f116a894984e2db1123eb395",
    }
)
# Beyond ERC-1155 an item names many NFTs, of which the other side takes its choice.
_SEAPORT_COIN, _SEAPORT_TOKEN, _SEAPORT_LAST = 0, 1, 3
# Polymarket/ctf-exchange and neg-risk-ctf-exchange on Polygon; what is paid with (USDC.e), and what is bought.
_POLYMARKET = frozenset({"0x4bfb41d5b3570defd03c39a9a4d8de6bd8b8982e", "0xc5d563a36ae78145c45a50134d48a1215220f80a"})
_POLYMARKET_CHAIN = 137
_POLYMARKET_GIVES = {
    0: "0x2791bca1f2de4661ed88a30c99a7a9449aa84174",
    1: "0x4d97dcd97ec945f40cf65f87097ace5ea0476045",
}
# x402-foundation/x402, contracts/evm/src: x402ExactPermit2Proxy.sol, x402UptoPermit2Proxy.sol; by CREATE2 the same
# address everywhere. Both give the witness to Permit2 as it was signed.
X402_EXACT, X402_UPTO = "0x402085c248eea27d92e8b30b2c58ed07f9e20001", "0x4020a4f3b7b90cca423b9fabcc0ce57c6c240002"
# Where unread parts are. No type has a name with spaces.
WITNESS, REFUND, OTHERS = "the witness beside a transfer", "the refund of gas", "whom an order pays besides"
# Circle's Gateway takes the transfers of ERC-3009 on balances of its own: with this name its contract is no token.
_GATEWAY = "GatewayWalletBatched"


def spend(document: Document, us: str, to: str, amount: int, token: str | None = None) -> Effect:
    """Spend what others may take: an amount of a token, by default of the contract that the document is for."""
    asset = f"evm:{document.chain_id}:{token or document.verifying_contract}"
    label = document.primary_type
    return Effect("transfer", asset, amount, us, to, unlimited=amount >= UNLIMITED, label=label)


def approve(document: Document, us: str, spender: str, amount: int, token: str | None = None) -> Effect:
    """Approve what others may take later. An approval of nothing can only take back what one gave before."""
    asset = f"evm:{document.chain_id}:{token or document.verifying_contract}"
    unlimited = amount >= UNLIMITED
    label, revokes = document.primary_type, not amount
    return Effect("approval", asset, amount, us, spender=spender, unlimited=unlimited, label=label, revokes=revokes)


def unread(document: Document, us: str, to: str | None = None, *, unknown: bool = False, label: str = "") -> Effect:
    """Mark what nobody reads: it may touch everything."""
    label = label or document.primary_type
    return Effect("unread", None, 0, us, to or document.verifying_contract, unknown=unknown, label=label)


def _permit(document: Document, message: Message, us: str) -> Effects | None:
    return (approve(document, us, message["spender"], message["value"]),) if message["owner"] == us else None


def _dai_permit(document: Document, message: Message, us: str) -> Effects | None:
    amount = MAX_UINT256 if message["allowed"] else 0
    return (approve(document, us, message["spender"], amount),) if message["holder"] == us else None


def _authorization(document: Document, message: Message, us: str) -> Effects | None:
    if message["from"] != us:
        return None
    if document.domain.get("name") == _GATEWAY:
        return (unread(document, us, unknown=True),)
    return (spend(document, us, message["to"], message["value"]),)


def _permit2_approvals(document: Document, message: Message, us: str) -> Effects | None:
    if document.verifying_contract != PERMIT2:
        return None
    return tuple(
        approve(document, us, message["spender"], each["amount"], each["token"])
        for each in _several(message["details"])
    )


def _permit2_transfers(document: Document, message: Message, us: str, to: str | None = None) -> Effects | None:
    """The spender may take the amount to wherever it likes, so it counts as sent to the spender."""
    if document.verifying_contract != PERMIT2:
        return None
    to = to or message["spender"]
    return tuple(spend(document, us, to, each["amount"], each["token"]) for each in _several(message["permitted"]))


def permit2_witness(document: Document, message: Message, us: str) -> Effects | None:
    """Read a transfer with a witness, of which Permit2 itself moves no more than without one.

    Of a known witness it is known what its contract makes of it. Another one is unread beside the transfer: what the
    spender takes it for, such as a claim on what lies with it already, only the spender says.
    """
    kind = list(document.schema.structs[document.primary_type].values())[-1]
    name = list(message)[-1]
    known = None if kind.sizes or kind.base not in document.schema.structs else document.schema.encode_type(kind.base)
    paid = WITNESSES[known](message["spender"], message[name]) if known in WITNESSES else None
    transfers = _permit2_transfers(document, message, us, paid)
    if transfers is None:
        return None
    if paid is None:
        return *transfers, unread(document, us, message["spender"], label=WITNESS)
    outputs = message[name].get("outputs", message[name].get("baseOutputs", []))
    return *transfers, *_others(document, us, outputs)


def _others(document: Document, us: str, paid: list[Message]) -> Effects:
    """List those whom an order pays beside us: its filler pays them out of what we give, in amounts unknown before."""
    names = dict.fromkeys(each["recipient"] for each in paid if each["recipient"] != us)
    return tuple(unread(document, us, name, label=OTHERS) for name in names)


def _x402(proxy: str) -> Callable[[str, Message], str | None]:
    """The proxy of x402 sends what it takes to `to`: it hands the witness to Permit2, which checks what was signed."""
    return lambda spender, witness: witness["to"] if spender == proxy else None


def _uniswapx(spender: str, witness: Message) -> str | None:
    # A reactor takes only orders that name it, and gives for the input what the order says.
    return spender if witness["info"]["reactor"] == spender else None


def _cow_order(document: Document, message: Message, us: str) -> Effects | None:
    amount = message["sellAmount"] + message["feeAmount"]
    if document.verifying_contract not in _COW or amount > MAX_UINT256:
        return None
    sold = spend(document, us, document.verifying_contract, amount, message["sellToken"])
    bought = [] if message["receiver"] == ZERO_ADDRESS else [{"recipient": message["receiver"]}]
    return (sold, *_others(document, us, bought))


def _zero_ex_order(document: Document, message: Message, us: str) -> Effects | None:
    """Read what we give, as maker or as taker; to the other side, if it is named."""
    if document.verifying_contract not in _ZERO_EX:
        return None
    given: Effects = ()
    for side, other in (("maker", "taker"), ("taker", "maker")):
        if message[side] == us:
            to = document.verifying_contract if message[other] == ZERO_ADDRESS else message[other]
            given += (spend(document, us, to, message[f"{side}Amount"], message[f"{side}Token"]),)
    return given


def seaport_orders(document: Document, message: Message, us: str) -> Effects | None:
    """Read what one order, or each of a tree, offers; an empty order of nobody fills a tree up."""
    orders = list(_leaves(message["tree"])) if "tree" in message else [message]
    ours = [order for order in orders if order["offerer"] == us]
    strangers = any(order["offerer"] not in (us, ZERO_ADDRESS) for order in orders)
    items = [item for order in ours for item in order["offer"]]
    paid = [item for order in ours for item in order["consideration"]]
    if document.verifying_contract not in _SEAPORT or strangers or any(_odd(item) for item in items):
        return None
    given = tuple(_offer(document, item, us) for item in items)
    return (*given, *_others(document, us, paid)) if given else None


def _leaves(tree: list[Any] | Message) -> Iterator[Message]:
    if isinstance(tree, dict):
        yield tree
        return
    for branch in tree:
        yield from _leaves(branch)


def _odd(item: Message) -> bool:
    return bool(item["itemType"] > _SEAPORT_LAST)


def _offer(document: Document, item: Message, us: str) -> Effect:
    most = max(item["startAmount"], item["endAmount"])
    given = spend(document, us, document.verifying_contract or "", most, item["token"])
    if item["itemType"] == _SEAPORT_COIN:
        return msgspec.structs.replace(given, asset=EVM_NATIVE)
    if item["itemType"] == _SEAPORT_TOKEN:
        return given
    return msgspec.structs.replace(given, nft=True, label=f"token {item['identifierOrCriteria']}")


def _polymarket_order(document: Document, message: Message, us: str) -> Effects | None:
    """Read what the order gives, in whichever wallet it lies: its maker may be a contract of the agent."""
    token = _POLYMARKET_GIVES.get(message["side"])
    if document.verifying_contract not in _POLYMARKET or document.chain_id != _POLYMARKET_CHAIN or token is None:
        return None
    given = spend(document, us, document.verifying_contract, message["makerAmount"], token)
    if not message["side"]:
        return (given,)
    return (msgspec.structs.replace(given, nft=True, label=f"token {message['tokenId']}"),)


def _safe_transaction(document: Document, message: Message, us: str) -> Called | None:
    """Read what the Safe will call, as if it stood alone: the Safe's money counts as ours.

    A delegate call runs foreign code as the Safe. What a refund of gas comes to nobody can tell beforehand.
    """
    if message["operation"]:
        return (unread(document, us, message["to"]),), ()
    safe = document.verifying_contract or us
    effects, calls = _call(document, message["to"], message["value"], message["data"], safe)
    refund = (unread(document, us, message["refundReceiver"], label=REFUND),) if message["gasPrice"] else ()
    # In its own name it may do what it does for nobody else, such as change its owners.
    own = (unread(document, us),) if message["to"] == safe and message["data"] else ()
    return (*effects, *refund, *own), calls


def _forward_request(document: Document, message: Message, us: str) -> Called | None:
    if message["from"] != us:
        return None
    return _call(document, message["to"], message["value"], message["data"], us)


def _meta_transaction(document: Document, message: Message, us: str) -> Called | None:
    if message["from"] != us:
        return None
    return _call(document, document.verifying_contract or us, 0, message["functionSignature"], us)


def _call(document: Document, to: str, value: int, data: bytes, sender: str) -> Called:
    effects, calls = decode(to, value, data, document.chain_id or 0, sender)
    name = document.primary_type
    return tuple(msgspec.structs.replace(effect, label=effect.label or name) for effect in effects), calls


def _recipient(document: Document, message: Message, us: str) -> Effects | None:
    """Name the recipient of what is at the exchange: that has no name among our assets, so no limit can count it."""
    try:
        return (unread(document, us, parse_address(message["destination"])),)
    except BadAddress:
        return None


def _several(value: Any) -> list[Message]:
    return value if isinstance(value, list) else [value]


_DETAILS = "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
PERMISSIONS = "TokenPermissions(address token,uint256 amount)"
_AUTHORIZATION = "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
_FORWARDED = "address from,address to,uint256 value,uint256 gas,uint256 nonce,"
_ZERO_EX_SIDES = "address makerToken,address takerToken,uint128 makerAmount,uint128 takerAmount,"
_OFFERED = "address token,uint256 identifierOrCriteria,uint256 startAmount,uint256 endAmount"
_HYPERLIQUID = "HyperliquidTransaction:"
# What the type of a Seaport order, and of a transfer by Permit2 with a witness, consists of wherever it stands.
SEAPORT_ORDER = (
    "OrderComponents(address offerer,address zone,OfferItem[] offer,ConsiderationItem[] consideration,uint8 orderType,"
    "uint256 startTime,uint256 endTime,bytes32 zoneHash,uint256 salt,bytes32 conduitKey,uint256 counter)"
    f"ConsiderationItem(uint8 itemType,{_OFFERED},address recipient)OfferItem(uint8 itemType,{_OFFERED})"
)
WITNESS_FIELDS = "{} permitted,address spender,uint256 nonce,uint256 deadline,"

READERS: dict[str, Reader] = {
    "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)": _permit,
    "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)": _dai_permit,
    "TransferWithAuthorization" + _AUTHORIZATION: _authorization,
    "ReceiveWithAuthorization" + _AUTHORIZATION: _authorization,
    "PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)" + _DETAILS: _permit2_approvals,
    "PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)" + _DETAILS: _permit2_approvals,
    "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)"
    + PERMISSIONS: _permit2_transfers,
    "PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)"
    + PERMISSIONS: _permit2_transfers,
    # CoW Protocol: cowprotocol/contracts, src/contracts/libraries/GPv2Order.sol.
    "Order(address sellToken,address buyToken,address receiver,uint256 sellAmount,uint256 buyAmount,uint32 validTo,"
    "bytes32 appData,uint256 feeAmount,string kind,bool partiallyFillable,string sellTokenBalance,"
    "string buyTokenBalance)": _cow_order,
    # 0x 4: 0xProject/protocol, contracts/zero-ex/contracts/src/features/libs/LibNativeOrder.sol.
    f"LimitOrder({_ZERO_EX_SIDES}uint128 takerTokenFeeAmount,address maker,address taker,address sender,"
    "address feeRecipient,bytes32 pool,uint64 expiry,uint256 salt)": _zero_ex_order,
    f"RfqOrder({_ZERO_EX_SIDES}address maker,address taker,address txOrigin,bytes32 pool,uint64 expiry,"
    "uint256 salt)": _zero_ex_order,
    f"OtcOrder({_ZERO_EX_SIDES}address maker,address taker,address txOrigin,uint256 expiryAndNonce)": _zero_ex_order,
    # Seaport 1.1 to 1.6: ProjectOpenSea/seaport, docs/SeaportDocumentation.md.
    SEAPORT_ORDER: seaport_orders,
    # Polymarket/ctf-exchange, src/exchange/libraries/OrderStructs.sol.
    "Order(uint256 salt,address maker,address signer,address taker,uint256 tokenId,uint256 makerAmount,"
    "uint256 takerAmount,uint256 expiration,uint256 nonce,uint256 feeRateBps,uint8 side,"
    "uint8 signatureType)": _polymarket_order,
    # hyperliquid-dex/hyperliquid-python-sdk, hyperliquid/utils/signing.py.
    f"{_HYPERLIQUID}UsdSend(string hyperliquidChain,string destination,string amount,uint64 time)": _recipient,
    f"{_HYPERLIQUID}Withdraw(string hyperliquidChain,string destination,string amount,uint64 time)": _recipient,
    f"{_HYPERLIQUID}SpotSend(string hyperliquidChain,string destination,string token,string amount,"
    "uint64 time)": _recipient,
    f"{_HYPERLIQUID}SendAsset(string hyperliquidChain,string destination,string sourceDex,string destinationDex,"
    "string token,string amount,string fromSubAccount,uint64 nonce)": _recipient,
}
# Documents by which somebody else makes a call in our name.
CALLS: dict[str, Callable[[Document, Message, str], Called | None]] = {
    # Safe 1.3 to 1.4: safe-global/safe-smart-account, contracts/Safe.sol.
    "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,"
    "address gasToken,address refundReceiver,uint256 nonce)": _safe_transaction,
    # ERC-2771 forwarders: OpenZeppelin/openzeppelin-contracts 4 (MinimalForwarder) and 5 (ERC2771Forwarder).
    f"ForwardRequest({_FORWARDED}bytes data)": _forward_request,
    f"ForwardRequest({_FORWARDED}uint48 deadline,bytes data)": _forward_request,
    # maticnetwork/pos-portal, contracts/common/NativeMetaTransaction.sol, where the domain names a chain.
    "MetaTransaction(uint256 nonce,address from,bytes functionSignature)": _meta_transaction,
}

_INFO = (
    "OrderInfo(address reactor,address swapper,uint256 nonce,uint256 deadline,address additionalValidationContract,"
    "bytes additionalValidationData)"
)
_OUTPUT = "DutchOutput(address token,uint256 startAmount,uint256 endAmount,address recipient)"
_CURVE = "NonlinearDutchDecay(uint256 relativeBlocks,int256[] relativeAmounts)"
WITNESSES: dict[str, Callable[[str, Message], str | None]] = {
    "Witness(address to,uint256 validAfter)": _x402(X402_EXACT),
    "Witness(address to,address facilitator,uint256 validAfter)": _x402(X402_UPTO),
    # Uniswap/UniswapX, src/lib.
    "LimitOrder(OrderInfo info,address inputToken,uint256 inputAmount,OutputToken[] outputs)"
    + _INFO
    + "OutputToken(address token,uint256 amount,address recipient)": _uniswapx,
    "DutchOrder(OrderInfo info,uint256 decayStartTime,uint256 decayEndTime,address inputToken,"
    "uint256 inputStartAmount,uint256 inputEndAmount,DutchOutput[] outputs)" + _OUTPUT + _INFO: _uniswapx,
    "ExclusiveDutchOrder(OrderInfo info,uint256 decayStartTime,uint256 decayEndTime,address exclusiveFiller,"
    "uint256 exclusivityOverrideBps,address inputToken,uint256 inputStartAmount,uint256 inputEndAmount,"
    "DutchOutput[] outputs)" + _OUTPUT + _INFO: _uniswapx,
    "V2DutchOrder(OrderInfo info,address cosigner,address baseInputToken,uint256 baseInputStartAmount,"
    "uint256 baseInputEndAmount,DutchOutput[] baseOutputs)" + _OUTPUT + _INFO: _uniswapx,
    "PriorityOrder(OrderInfo info,address cosigner,uint256 auctionStartBlock,uint256 baselinePriorityFeeWei,"
    "PriorityInput input,PriorityOutput[] outputs)"
    + _INFO
    + "PriorityInput(address token,uint256 amount,uint256 mpsPerPriorityFeeWei)"
    "PriorityOutput(address token,uint256 amount,uint256 mpsPerPriorityFeeWei,address recipient)": _uniswapx,
    "V3DutchOrder(OrderInfo info,address cosigner,uint256 startingBaseFee,V3DutchInput baseInput,"
    "V3DutchOutput[] baseOutputs)" + _CURVE + _INFO + "V3DutchInput(address token,uint256 startAmount,"
    "NonlinearDutchDecay curve,uint256 maxAmount,uint256 adjustmentPerGweiBaseFee)"
    "V3DutchOutput(address token,uint256 startAmount,NonlinearDutchDecay curve,address recipient,uint256 minAmount,"
    "uint256 adjustmentPerGweiBaseFee)": _uniswapx,
}

# By each struct's own definition, at any depth of the document: a bulk order holds orders. A listed contract does not
# vouch for them: with one of these its constraints could be walked around.
UNREAD = frozenset(
    {
        _DETAILS,
        PERMISSIONS,
        "SafeMessage(bytes message)",
        # Safe before 1.0.
        "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 dataGas,"
        "uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)",
        # 0x 3 and the meta-transactions of 4: they carry calldata of the exchange.
        "Order(address makerAddress,address takerAddress,address feeRecipientAddress,address senderAddress,"
        "uint256 makerAssetAmount,uint256 takerAssetAmount,uint256 makerFee,uint256 takerFee,"
        "uint256 expirationTimeSeconds,uint256 salt,bytes makerAssetData,bytes takerAssetData,"
        "bytes makerFeeAssetData,bytes takerFeeAssetData)",
        "ZeroExTransaction(uint256 salt,uint256 expirationTimeSeconds,uint256 gasPrice,address signerAddress,"
        "bytes data)",
        "MetaTransactionData(address signer,address sender,uint256 minGasPrice,uint256 maxGasPrice,"
        "uint256 expirationTimeSeconds,uint256 salt,bytes callData,uint256 value,address feeToken,uint256 feeAmount)",
        "MetaTransactionDataV2(address signer,address sender,uint256 expirationTimeSeconds,uint256 salt,"
        "bytes callData,address feeToken,MetaTransactionFeeData[] fees)",
        # Polymarket's second exchange, and its sign-in, which makes an API key that trades.
        "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,"
        "uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)",
        "ClobAuth(address address,string timestamp,uint256 nonce,string message)",
        # Hyperliquid: a hash of an order or of anything else there, and what gives others power or fees.
        "Agent(string source,bytes32 connectionId)",
        f"{_HYPERLIQUID}ApproveAgent(string hyperliquidChain,address agentAddress,string agentName,uint64 nonce)",
        f"{_HYPERLIQUID}ApproveBuilderFee(string hyperliquidChain,string maxFeeRate,address builder,uint64 nonce)",
        f"{_HYPERLIQUID}UsdClassTransfer(string hyperliquidChain,string amount,bool toPerp,uint64 nonce)",
        f"{_HYPERLIQUID}TokenDelegate(string hyperliquidChain,address validator,uint64 wei,bool isUndelegate,"
        "uint64 nonce)",
        f"{_HYPERLIQUID}ConvertToMultiSigUser(string hyperliquidChain,string signers,uint64 nonce)",
        # Circle's Gateway, circlefin/evm-gateway-contracts, src/lib/TransferSpec.sol: balances on any chain.
        "TransferSpec(uint32 version,uint32 sourceDomain,uint32 destinationDomain,bytes32 sourceContract,"
        "bytes32 destinationContract,bytes32 sourceToken,bytes32 destinationToken,bytes32 sourceDepositor,"
        "bytes32 destinationRecipient,bytes32 sourceSigner,bytes32 destinationCaller,uint256 value,bytes32 salt,"
        "bytes hookData)",
        # Power that stays: votes (ERC-5805), MetaMask's delegations, Coinbase's spend permissions, ERC-4494.
        "Delegation(address delegatee,uint256 nonce,uint256 expiry)",
        "Delegation(address delegate,address delegator,bytes32 authority,Caveat[] caveats,uint256 salt)",
        "SpendPermission(address account,address spender,address token,uint160 allowance,uint48 period,uint48 start,"
        "uint48 end,uint256 salt,bytes extraData)",
        "Permit(address spender,uint256 tokenId,uint256 nonce,uint256 deadline)",
    }
    # But x402's witness, whose name and fields mean nothing elsewhere.
    | {each.split(")", 1)[0] + ")" for each in (*READERS, *CALLS, *WITNESSES) if not each.startswith("Witness(")}
)
# Whole documents that move nothing and grant nothing, whatever their domain. A sign-in that opens an account or makes
# a key somewhere (dYdX, Polymarket, Farcaster) grants something, and so does a vote; neither belongs here.
HARMLESS = frozenset(
    {
        # The example of EIP-712 itself.
        "Mail(Person from,Person to,string contents)Person(string name,address wallet)",
        # ERC-3009: makes an unused authorization unusable.
        "CancelAuthorization(address authorizer,bytes32 nonce)",
        # CoW Protocol: withdraws orders that were not settled yet; cowprotocol/services, crates/model/src/order.rs.
        "OrderCancellations(bytes[] orderUids)",
    }
)
