"""The judgement whether the signers shown are enough for a key quorum, and which quorums may be kept. Pure.

Guarantees: one subject and one public key count once in the whole tree, a member quorum counts once and only when its
own members are enough, and a tree with a cycle or more than three levels agrees to nothing. A yes is always right.
A no may be wrong, rarely, where the same subject stands at several places of the tree and was counted at the wrong one.
"""

from collections.abc import Collection, Mapping, Set

from custody.identity.authority import MAX_DEPTH, Authority, Quorum, Signer
from custody.kit.errors import Invalid

# What counts once: a subject, a public key, a member quorum.
type _Mark = tuple[str, ...] | bytes


class QuorumCycle(Invalid):
    """A key quorum would contain itself, directly or through its member quorums; remove one of `memberQuorumIds`."""


class QuorumTooDeep(Invalid):
    """Key quorums may be nested 3 levels deep, the first included; name the signers directly instead."""


def is_met(authority: Authority, quorum_id: str, shown: Collection[str], permissions: Set[str]) -> bool:
    """Say whether these signers together are enough for a quorum that has one of the permissions.

    A signer who is shown and stands nowhere in the tree refuses all. Signers and member quorums that are revoked,
    paused or without the permission stand in the tree, and do not count.
    """
    try:
        tree = _tree(authority.quorums, quorum_id)
    except (QuorumCycle, QuorumTooDeep):
        return False
    quorum = tree.get(quorum_id)
    if quorum is None or not _may(quorum, permissions):
        return False
    given = set(shown)
    if not given or not given <= {member for one in tree.values() for member in one.members}:
        return False
    counted = {
        signer.id: signer
        for name in given
        if (signer := authority.signers.get(name)) is not None and _may(signer, permissions)
    }
    living = {name: one for name, one in tree.items() if _may(one, permissions)}
    return _use(quorum, living, counted, frozenset({("quorum", quorum_id)})) is not None


def reasons(authority: Authority, quorum_id: str, shown: Collection[str], permissions: Set[str]) -> dict[str, str]:
    """List those shown, and the member quorums, that do not count, each with the reason; for where too few agreed."""
    tree = _tree(authority.quorums, quorum_id)
    why: dict[str, str] = {}
    used: dict[_Mark, str] = {}
    for name in sorted(set(shown)):
        marks = _marks(authority.signers[name])
        if not any(name in one.members for one in tree.values()):
            why[name] = "it is no member"
        elif twin := next((used[mark] for mark in marks if mark in used), None):
            why[name] = f"it has the subject or the key of {twin}, which counts"
        used = {**dict.fromkeys(marks, name), **used}
    for name in sorted({child for one in tree.values() for child in one.children}):
        if (child := tree.get(name)) is None or child.status != "active":
            why[name] = "it is revoked" if child is None else "it is paused"
        elif not _may(child, permissions):
            why[name] = "it lacks the permission that this route needs"
        else:
            below = {member for one in _tree(authority.quorums, name).values() for member in one.members}
            if not is_met(authority, name, below.intersection(shown), permissions):
                why[name] = "too few of its own members agreed"
    return why


def check_shape(quorums: Mapping[str, Quorum]) -> None:
    """Raise QuorumCycle or QuorumTooDeep unless every tree of a set that is to be kept can agree to something."""
    levels: dict[str, int] = {}
    for quorum_id in quorums:
        _levels(quorums, quorum_id, levels, ())


def _tree(quorums: Mapping[str, Quorum], root: str) -> dict[str, Quorum]:
    """The quorum and all below it; a member quorum that is revoked is in no set, and so in no tree."""
    levels: dict[str, int] = {}
    _levels(quorums, root, levels, ())
    return {name: quorums[name] for name in levels if name in quorums}


def _levels(quorums: Mapping[str, Quorum], quorum_id: str, known: dict[str, int], above: tuple[str, ...]) -> int:
    if quorum_id in above:
        raise QuorumCycle
    # A path that is too long ends here, so that no set, however it was written, makes this recurse further.
    if len(above) >= MAX_DEPTH and quorum_id in quorums:
        raise _cyclic_or_deep(quorums, quorum_id, above)
    if quorum_id not in known:
        quorum = quorums.get(quorum_id)
        children = quorum.children if quorum is not None else ()
        below = [_levels(quorums, child, known, (*above, quorum_id)) for child in children]
        known[quorum_id] = 0 if quorum is None else 1 + max(below, default=0)
    if len(above) + known[quorum_id] > MAX_DEPTH:
        raise QuorumTooDeep
    return known[quorum_id]


def _cyclic_or_deep(quorums: Mapping[str, Quorum], quorum_id: str, above: tuple[str, ...]) -> Invalid:
    """Tell which of the two a path that is too long is: a cycle further down is told as such."""
    seen: set[str] = set()
    ahead = [quorum_id]
    while ahead:
        name = ahead.pop()
        if name in above:
            return QuorumCycle()
        if name not in seen and name in quorums:
            seen.add(name)
            ahead += quorums[name].children
    return QuorumTooDeep()


def _may(one: Signer | Quorum, permissions: Set[str]) -> bool:
    return one.status == "active" and not one.permissions.isdisjoint(permissions)


def _use(
    quorum: Quorum, living: Mapping[str, Quorum], counted: Mapping[str, Signer], used: frozenset[_Mark]
) -> frozenset[_Mark] | None:
    """Find what is used up once this quorum is met, or None.

    No more is used than the threshold needs, so that what is left counts elsewhere in the tree.
    """
    missing = quorum.threshold
    # A threshold below one comes from no writer of ours, and would be met by nobody.
    if missing < 1:
        return None
    for name in quorum.members:
        marks = _marks(counted[name]) if name in counted else None
        if marks is not None and missing and used.isdisjoint(marks):
            used |= marks
            missing -= 1
    for name in quorum.children:
        child = living.get(name)
        if child is None or not missing or ("quorum", name) in used:
            continue
        taken = _use(child, living, counted, used | {("quorum", name)})
        if taken is not None:
            used = taken
            missing -= 1
    return None if missing else used


def _marks(signer: Signer) -> frozenset[_Mark]:
    marks: set[_Mark] = {("subject", *signer.subject)}
    if signer.public_key is not None:
        marks.add(signer.public_key)
    return frozenset(marks)
