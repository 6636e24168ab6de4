"""An agent's signers and key quorums in words. Pure; whatever is stored, it never raises."""

import base64
import binascii
from collections.abc import Sequence

from console.approver.matter import fingerprint, group_digits
from console.rules.rules_in_words import KINDS
from console.wire.shapes_signers import KeyQuorum, Named, Signer
from words.shapes import PolicyRule
from words.texts.fields import Field, pluralize
from words.texts.moments import clock, moment
from words.texts.plain import clip, short

_NAME_CHARACTERS = 100
_NEVER = "no key: it authorises nothing"


def name_of(one: Named) -> str:
    """Name a signer or a quorum; a signer without a label by its subject."""
    found = one.name if isinstance(one, KeyQuorum) else one.label or one.subject_id
    return clip(found, _NAME_CHARACTERS)


def kind_of(one: Named) -> str:
    """Describe the kind: a signer's type, or how many of how many a quorum needs."""
    if isinstance(one, KeyQuorum):
        return f"quorum {one.threshold:,} of {_members(one):,}"
    return one.signer_type.replace("_", " ")


def permissions_of(one: Named) -> str:
    """List in words the kinds of orders that it may authorise."""
    return ", ".join(one.permissions) or "nothing"


def key_of(one: Named) -> str:
    """A signer's key by the beginning of its fingerprint; empty for a quorum, which has none."""
    if isinstance(one, KeyQuorum):
        return ""
    found = _fingerprint(one)
    return f"{found[:16]}…" if found else one.key_type if one.has_credential else "none"


def rules_of(one: Named) -> str:
    """Count the agent's rules that narrow what it authorises."""
    number = len(one.policy_ids) if isinstance(one, Signer) else 0
    return pluralize(number, "rule", "rules") if number else "-"


def in_full(one: Named, all_of: Sequence[Named], rules: Sequence[PolicyRule]) -> list[Field]:
    """All of it, as fields."""
    fields = [
        ("Name", name_of(one)),
        ("Id", one.id),
        ("What it is", kind_of(one)),
        ("State", one.status),
        ("May authorise", permissions_of(one)),
    ]
    if isinstance(one, Signer):
        found = _fingerprint(one)
        fields += [("Who", f"{one.subject_type}: {clip(one.subject_id, _NAME_CHARACTERS)}")]
        credential = "a secret credential, shown once" if one.has_credential else _NEVER
        fields += [("Key", f"{one.key_type}, fingerprint {group_digits(found)}" if found else credential)]
        fields += [("Narrowed by", line) for line in _rules(one, rules)]
        fields += [("Not before", clock(moment(one.not_before)))] if one.not_before else []
        fields += [("Authorises until", clock(moment(one.expires_at)))] if one.expires_at else []
    else:
        fields += [("Members", line) for line in _named_members(one, all_of)]
    fields.append(("Made", clock(moment(one.created_at))))
    return [*fields, ("Revoked", clock(moment(one.revoked_at)))] if one.revoked_at else fields


def _rules(signer: Signer, rules: Sequence[PolicyRule]) -> list[str]:
    known = {rule.id: rule for rule in rules}
    return [
        f"{KINDS.get(known[one].type, (known[one].type,))[0]} ({one})"
        if one in known
        else f"a rule that is gone ({one})"
        for one in signer.policy_ids
    ] or ["no rule of its own: the agent's rules alone"]


def _named_members(quorum: KeyQuorum, all_of: Sequence[Named]) -> list[str]:
    known = {one.id: one for one in all_of}
    ids = [*quorum.member_signer_ids, *quorum.member_quorum_ids]
    return [
        f"{name_of(known[one])} ({known[one].status})" if one in known else f"not known here ({short(one)})"
        for one in ids
    ]


def _members(quorum: KeyQuorum) -> int:
    return len(quorum.member_signer_ids) + len(quorum.member_quorum_ids)


def _fingerprint(signer: Signer) -> str | None:
    try:
        raw = base64.b64decode(signer.public_key or "", validate=True)
    except (binascii.Error, ValueError):
        return None
    return fingerprint(raw)
