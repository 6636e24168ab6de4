"""The payload of an intent, by its type, read strictly by the structs of the routes that would do it at once. Pure.

The canonical text is what an approver's digest is over and what is carried out: fields that were left out stay out, and
whatever a later default might change (a rule's id, the active chain) is written down when the intent is made.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.evm.action_orders import CallsOrder, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.identity.authority import MAX_MEMBERS
from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.shapes import ChainId, DisplayName, Uuid
from custody.kit.spellings import AliasConflict
from custody.policies.kinds import PolicyRule
from custody.policies.types import PolicyId
from custody.protocol.signer.intent_words import IntentType

TYPES: Final[tuple[IntentType, ...]] = get_args(IntentType)
# Only a person proposes these: they change who may do what.
CONTROL_PLANE: Final[frozenset[str]] = frozenset(
    {
        "wallet_update",
        "policy_update",
        "policy_rule_create",
        "policy_rule_delete",
        "policy_rule_update",
        "quorum_update",
    }
)
POLICY: Final[frozenset[str]] = frozenset(one for one in TYPES if one.startswith("policy_"))
SIGNING: Final[frozenset[str]] = frozenset({"transfer", "wallet_action"})
MAX_PAYLOAD_BYTES: Final = 300_000
MAX_RPC_PARAMS_BYTES: Final = 16 * 1024
EVM_METHODS: Final = (
    "eth_blockNumber",
    "eth_call",
    "eth_chainId",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByNumber",
    "eth_getCode",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
)
SOLANA_METHODS: Final = (
    "getAccountInfo",
    "getBalance",
    "getLatestBlockhash",
    "getSignatureStatuses",
    "getTokenAccountsByOwner",
    "getTransaction",
)
# Fields with a second spelling.
_ALIASES: Final[Mapping[str, str]] = {"rule_id": "ruleId", "display_name": "displayName"}


class BadPayload(Invalid):
    """The payload does not fit this type of intent."""


class LastRule(Invalid):
    """This is the agent's last rule: send `allowDeleteLastPolicy` true to delete it all the same."""


class AllRules(Invalid):
    """This would clear all rules of the agent: send `allowClearAllPolicies` true to do it all the same."""


class RpcMethodNotAllowed(Invalid):
    """This RPC method is not among the read-only ones that an intent may call."""


class _Payload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The payload of one type."""


class PolicyUpdate(_Payload, frozen=True, kw_only=True):
    """`policy_update`: the whole new set."""

    policies: Annotated[list[PolicyRule], described("The rules of the agent from then on.")]
    allow_clear_all_policies: Annotated[bool, described("Whether the set may be empty.")] = False


class RuleCreate(_Payload, frozen=True, kw_only=True):
    """`policy_rule_create`: one more rule, behind the others."""

    rule: Annotated[PolicyRule, described("The new rule.")]


class RulePatch(_Payload, frozen=True, kw_only=True):
    """Changes of a rule; fields of `config` replace those of the same name."""

    enabled: Annotated[bool | UnsetType, described("True if the rule is evaluated.")] = UNSET
    config: Annotated[dict[str, Any] | UnsetType, described("Fields of the config, by name.")] = UNSET


class RuleUpdate(_Payload, frozen=True, kw_only=True):
    """`policy_rule_update`: a rule in place of an old one, or what changes of it."""

    action: Annotated[Literal["update"], described("Always `update`.")] = "update"
    rule_id: Annotated[PolicyId, described("The rule, by its id.")]
    patch: Annotated[RulePatch | None, described("What changes; or `rule`.")] = None
    rule: Annotated[PolicyRule | None, described("The rule as it will be; or `patch`.")] = None


class RuleDelete(_Payload, frozen=True, kw_only=True):
    """`policy_rule_delete`: one rule less."""

    rule_id: Annotated[PolicyId, described("The rule, by its id.")]
    allow_delete_last_policy: Annotated[bool, described("Whether it may be the agent's last rule.")] = False


class WalletUpdate(_Payload, frozen=True, kw_only=True):
    """`wallet_update`: what people and platforms call an agent."""

    name: Annotated[DisplayName | UnsetType, described("A name for people.")] = UNSET
    display_name: Annotated[DisplayName | UnsetType | None, described("Name that people see; null removes it.")] = UNSET
    platform_id: Annotated[
        DisplayName | UnsetType | None, described("The agent's id on your own platform; null takes it away.")
    ] = UNSET
    erc8004_token_id: Annotated[
        Annotated[str, Meta(max_length=78, pattern=r"^(0|[1-9][0-9]*)\Z")] | UnsetType | None,
        described("The agent's ERC-8004 identity token, as a decimal string; null takes it away."),
    ] = msgspec.field(name="erc8004TokenId", default=UNSET)


class QuorumUpdate(_Payload, frozen=True, kw_only=True):
    """`quorum_update`: a key quorum created, changed or revoked."""

    action: Annotated[Literal["create", "update", "revoke"], described("What happens to the quorum.")]
    quorum_id: Annotated[Uuid | None, described("The quorum, by its id; not for `create`.")] = None
    name: Annotated[DisplayName | UnsetType, described("A name for people.")] = UNSET
    threshold: Annotated[int | UnsetType, described("Number of members that must agree.")] = UNSET
    member_signer_ids: Annotated[
        Annotated[list[Uuid], Meta(max_length=MAX_MEMBERS)] | UnsetType, described("The signers that count.")
    ] = UNSET
    member_quorum_ids: Annotated[
        Annotated[list[Uuid], Meta(max_length=MAX_MEMBERS)] | UnsetType,
        described("Key quorums that count as one member each."),
    ] = UNSET
    permissions: Annotated[
        Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=32)] | UnsetType,
        described("What it may authorise."),
    ] = UNSET
    metadata: Annotated[dict[str, Any] | UnsetType, described("Anything of yours, at most 4 KiB.")] = UNSET
    status: Annotated[Literal["active", "paused"] | UnsetType, described("`paused`: it authorises nothing.")] = UNSET


class RpcCall(_Payload, frozen=True, kw_only=True):
    """`rpc`: a read-only question to a node."""

    method: Annotated[Annotated[str, Meta(min_length=1, max_length=64)], described("The method, such as `eth_call`.")]
    params: Annotated[list[Any] | dict[str, Any], described("Its parameters, at most 16 KiB.")] = []
    chain_id: Annotated[ChainId, described("The chain whose node is asked.")]


type Payload = (
    EvmOrder
    | TransferOrder
    | CallsOrder
    | PolicyUpdate
    | RuleCreate
    | RuleUpdate
    | RuleDelete
    | WalletUpdate
    | QuorumUpdate
    | RpcCall
)
_ACTIONS: Final[Mapping[str, type[TransferOrder | CallsOrder]]] = {"transfer": TransferOrder, "send_calls": CallsOrder}
SHAPES: Final[Mapping[str, Any]] = {
    "rpc": RpcCall,
    "transfer": EvmOrder,
    "wallet_update": WalletUpdate,
    "policy_update": PolicyUpdate,
    "policy_rule_create": RuleCreate,
    "policy_rule_delete": RuleDelete,
    "policy_rule_update": RuleUpdate,
    "quorum_update": QuorumUpdate,
}


def shape_of(kind: str, payload: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The struct that a payload must fit, and its fields under their one spelling."""
    fields = dict(payload)
    for other, name in _ALIASES.items():
        if other not in fields:
            continue
        given = fields.pop(other)
        if fields.setdefault(name, given) != given:
            raise AliasConflict(f"payload.{name} and payload.{other} are one field and differ; send one of them.")
    if kind != "wallet_action":
        return SHAPES[kind], fields
    action = fields.pop("action", None)
    if not isinstance(action, str) or action not in _ACTIONS:
        raise BadPayload("payload.action must be `transfer` or `send_calls`.", fields=["payload.action"])
    return _ACTIONS[action], fields


def read(kind: str, payload: Mapping[str, Any]) -> Payload:
    """The payload of a type of intent; msgspec.ValidationError, BadPayload or a refusal of its own kind."""
    shape, fields = shape_of(kind, payload)
    found: Payload = msgspec.convert(fields, shape)
    _check(found)
    return found


def text_of(kind: str, payload: Payload) -> str:
    """The one spelling of a payload: sorted, without what was not given."""
    fields = {name: value for name, value in msgspec.to_builtins(payload).items() if value is not None or _null(name)}
    if kind == "wallet_action":
        fields["action"] = next(action for action, shape in _ACTIONS.items() if isinstance(payload, shape))
    return msgspec.json.encode(fields, order="sorted").decode()


def digest_of(kind: str, text: str) -> bytes:
    """Hash a payload: the digest is what its authoriser confirms, and what is carried out."""
    return hashlib.sha256(b"custody-intent-v1:" + kind.encode() + b":" + text.encode()).digest()


def complete(payload: Payload, new_id: Callable[[], str]) -> Payload:
    """The payload with an id for every rule that it makes, so that its digest says which."""
    if isinstance(payload, PolicyUpdate):
        return msgspec.structs.replace(payload, policies=[_with_id(rule, new_id) for rule in payload.policies])
    if isinstance(payload, RuleCreate):
        return msgspec.structs.replace(payload, rule=_with_id(payload.rule, new_id))
    return payload


def _with_id(rule: PolicyRule, new_id: Callable[[], str]) -> PolicyRule:
    return rule if rule.id is not None else msgspec.structs.replace(rule, id=new_id())


def _null(name: str) -> bool:
    """A null that says something: it takes the value away."""
    return name in {"displayName", "platformId", "erc8004TokenId"}


def _check(payload: Payload) -> None:
    if isinstance(payload, EvmOrder) and payload.chain_id is None:
        raise BadPayload("payload.chainId is required.", fields=["payload.chainId"])
    if isinstance(payload, RuleUpdate) and (payload.patch is None) == (payload.rule is None):
        raise BadPayload("payload must have exactly one of `patch` and `rule`.", fields=["payload"])
    if isinstance(payload, PolicyUpdate) and not payload.policies and not payload.allow_clear_all_policies:
        raise AllRules
    if isinstance(payload, WalletUpdate):
        _check_wallet(payload)
    if isinstance(payload, QuorumUpdate):
        _check_quorum(payload)
    if isinstance(payload, RpcCall):
        if payload.method not in (*EVM_METHODS, *SOLANA_METHODS):
            allowed = ", ".join((*EVM_METHODS, *SOLANA_METHODS))
            raise RpcMethodNotAllowed(f"payload.method {payload.method!r} is not allowed; there are {allowed}.")
        if len(msgspec.json.encode(payload.params)) > MAX_RPC_PARAMS_BYTES:
            raise BadPayload("payload.params has at most 16 KiB.", fields=["payload.params"])


def _check_wallet(payload: WalletUpdate) -> None:
    if all(one is UNSET for one in (payload.name, payload.display_name, payload.platform_id, payload.erc8004_token_id)):
        raise BadPayload(
            "payload changes nothing: send `name`, `displayName`, `platformId` or `erc8004TokenId`.", fields=["payload"]
        )


def _check_quorum(payload: QuorumUpdate) -> None:
    if (payload.action == "create") == (payload.quorum_id is not None):
        raise BadPayload(
            "payload.quorumId names the quorum to update or revoke, and none for `create`.", fields=["payload.quorumId"]
        )
    said = {
        "name": payload.name,
        "threshold": payload.threshold,
        "memberSignerIds": payload.member_signer_ids,
        "memberQuorumIds": payload.member_quorum_ids,
        "permissions": payload.permissions,
        "metadata": payload.metadata,
        "status": payload.status,
    }
    given = [name for name, value in said.items() if value is not UNSET]
    if payload.action == "revoke" and given:
        raise BadPayload(f"payload.{given[0]}: a quorum that is revoked changes in no other way.", fields=["payload"])
    if payload.action == "update" and not given:
        raise BadPayload("payload changes nothing of the quorum.", fields=["payload"])
    if payload.action == "create":
        missing = [name for name in ("name", "threshold", "memberSignerIds", "permissions") if name not in given]
        if missing:
            raise BadPayload(f"payload.{missing[0]} is required.", fields=[f"payload.{missing[0]}"])
        if payload.status is not UNSET:
            raise BadPayload("payload.status: a new quorum is active.", fields=["payload.status"])
