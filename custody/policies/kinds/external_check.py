"""`external-check`: a service of the tenant's is asked about each order, and answers with a signature of its own key.

Nobody but the key can allow: an answer that is missing, late, of another order or not signed lets nothing pass by
itself. What is asked is what the bytes of the order do, and the answer names that by its digest, with the transaction,
so that no answer serves twice. Pure: who carries question and answer is believed in nothing.
"""

import hashlib
from base64 import b64decode
from typing import Annotated, ClassVar, Final, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.types import Effect, Subject
from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.json_bodies import look_through
from custody.kit.web_urls import MAX_URL, NotWebUrl, read_url
from custody.policies.kind import Config, Rule, Terms, sent_or
from custody.policies.types import CheckAnswer, CheckQuestion, Facts, InvalidPolicy

TYPE: Final = "external-check"
# What the service signs: this line, the SHA-256 of the question in hex and a line break, and its answer as it is.
DOMAIN: Final = b"custody-external-check-v1\n"
# Bytes of a question; what an order does that has no room in it is for a person.
MOST_QUESTION: Final = 32_768
# Between the clock of the service and that of the signer.
MOST_SECONDS_APART: Final = 120
_SECONDS: Final = 3
CheckUrl = Annotated[str, Meta(min_length=9, max_length=MAX_URL, pattern=r"^[\x21-\x7e]*\Z")]
Ed25519Key = Annotated[str, Meta(min_length=44, max_length=44, pattern=r"^[A-Za-z0-9+/]{43}=\Z")]

# Points of small order, the sign left out, as libsodium lists them: each is a public key of which no secret is needed.
_ANYBODYS: Final = frozenset(
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


class _Effect(msgspec.Struct, rename="camel", omit_defaults=True):
    """One effect as it is asked about; the amount is in the smallest unit."""

    kind: str
    amount: str
    asset: str | None = None
    sender: str | None = None
    recipient: str | None = None
    spender: str | None = None
    label: str | None = None
    unlimited: bool = False
    nft: bool = False


class _Question(msgspec.Struct, rename="camel"):
    version: int
    url: str
    tenant_id: str
    agent_id: str
    transaction_id: str
    kind: str
    chain: str | None
    destination: str | None
    effects: list[_Effect]


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    decision: Literal["allow", "ask", "refuse"]
    # Seconds since 1970.
    at: Annotated[int, Meta(ge=0, le=2**40)]
    reason: Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\Z")] = ""


class ExternalCheck(Terms, frozen=True):
    """The service and the keys that it answers by; whether an order is refused that nobody answers for."""

    url: str
    keys: frozenset[bytes]
    refuses: bool
    seconds: int

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the service allows the order, or a person did, and why."""
        decision, why = self._ask(subject, facts)
        if decision == "refuse" or not facts.approving:
            return decision == "allow", why
        return True, f"{why}; a person approved it"

    def only_asks(self, subject: Subject, facts: Facts) -> bool:
        """Say whether a person may decide what the service does not allow."""
        return self._ask(subject, facts)[0] == "ask"

    def question(self, subject: Subject, facts: Facts) -> CheckQuestion | None:
        """Give what the service is to be asked about an order; None of one that is too large for a question."""
        body = _question(self.url, subject, facts)
        return None if len(body) > MOST_QUESTION else CheckQuestion(self.url, body, self.seconds)

    def tightens(self, old: Self) -> bool:
        """Say whether the same service answers, by no other key, and no order waits for a person that was refused."""
        return self.url == old.url and self.keys <= old.keys and self.refuses >= old.refuses

    def _ask(self, subject: Subject, facts: Facts) -> tuple[str, str]:
        digest = hashlib.sha256(_question(self.url, subject, facts)).hexdigest()
        if facts.answers is None:
            return "ask", "the external check is asked when the order is to be signed"
        # What was asked about before it waited is refused by nobody for an answer that it had then.
        otherwise = "refuse" if self.refuses and not (facts.approving or facts.waited) else "ask"
        for answer in facts.answers:
            if answer.question == digest and self._is_signed(digest, answer, facts):
                return _read(answer.body, facts, otherwise)
        return otherwise, "the external check gave no answer that counts"

    def _is_signed(self, digest: str, answer: CheckAnswer, facts: Facts) -> bool:
        content = DOMAIN + digest.encode() + b"\n" + answer.body
        return any(facts.verify(key, answer.signature, content) for key in self.keys)


class ExternalCheckConfig(Config, frozen=True):
    """Answers are signed; docs/policies.md says how."""

    url: Annotated[
        CheckUrl,
        described("The address of the service, for a POST. On the internet, by https; no redirect is followed."),
    ]
    public_keys: Annotated[
        Annotated[list[Ed25519Key], Meta(min_length=1, max_length=3)],
        described("The Ed25519 keys that answers count by, 32 bytes each, in base64; a second one for a change."),
    ]
    on_failure: Annotated[
        Literal["ask", "refuse"] | UnsetType,
        described("The fate of an order without an answer that counts: a person decides, or it is refused."),
    ] = UNSET
    timeout_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=8)] | UnsetType,
        described("The time that an answer may take.", unit="seconds", default=_SECONDS),
    ] = UNSET

    def terms(self) -> ExternalCheck:
        """The address and the keys, as they are compared."""
        try:
            read_url(self.url)
        except NotWebUrl as problem:
            raise InvalidPolicy(f"`url` cannot be asked. {problem.sentence}") from None
        keys = frozenset(b64decode(key) for key in self.public_keys)
        if any(key[:-1] + bytes((key[-1] & 0x7F,)) in _ANYBODYS for key in keys):
            raise InvalidPolicy("`publicKeys` has a point for which anybody can make signatures; take a key of a pair")
        refuses = sent_or(self.on_failure, "ask") == "refuse"
        return ExternalCheck(self.url, keys, refuses, sent_or(self.timeout_seconds, _SECONDS))


class ExternalCheckRule(Rule, frozen=True, kw_only=True, tag="external-check"):
    """A service of yours is asked about each order, and its signed answer allows it, asks a person or refuses it."""

    hard: ClassVar[bool] = True

    config: Annotated[ExternalCheckConfig, described("Settings of the rule.")]


def _question(url: str, subject: Subject, facts: Facts) -> bytes:
    """Name the address too: what one service says is not what another was asked."""
    tenant, agent, transaction = facts.order
    # A message is one effect or, where a list names it, none; it is told by its kind alone.
    effects = [] if subject.message is not None else [_effect_of(effect) for effect in subject.effects]
    return msgspec.json.encode(
        _Question(1, url, tenant, agent, transaction, subject.kind, subject.caip2, subject.destination, effects)
    )


def _effect_of(effect: Effect) -> _Effect:
    return _Effect(
        effect.kind,
        str(effect.amount),
        effect.asset,
        effect.from_,
        effect.to,
        effect.spender,
        effect.label,
        effect.unlimited,
        effect.nft,
    )


def _read(body: bytes, facts: Facts, otherwise: str) -> tuple[str, str]:
    """Read what the key signed; what cannot be read is no answer."""
    try:
        look_through(body)
        answer = msgspec.json.decode(body, type=_Answer)
    except (Invalid, msgspec.MsgspecError, ValueError, RecursionError):
        return otherwise, "the external check gave an answer that nobody can read"
    if abs(facts.now.timestamp() - answer.at) > MOST_SECONDS_APART:
        return otherwise, "the answer of the external check is of another time; its clock or the signer's is wrong"
    said = {"allow": "allows it", "ask": "asks for a person", "refuse": "refuses it"}[answer.decision]
    return answer.decision, f"the external check {said}{f': {answer.reason}' if answer.reason else ''}"
