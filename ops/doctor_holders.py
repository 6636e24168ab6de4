"""The check of `custody doctor` for who opens the master key file, and with `--holders` whether each does."""

from custody.kit.key_head import MalformedHead
from ops import locking
from ops.findings import Finding
from ops.holders import SOURCE, kinds_of, read_head
from ops.settings import Settings

_SUBJECT = "key holders"
# Outside of every provider: the operator's own.
OUTSIDE = ("recovery", "people")


def holders(settings: Settings) -> Finding:
    """The settings fit the file, and one holder is the operator's own."""
    file = settings.master_key_file
    try:
        head = read_head(file)
    except (OSError, MalformedHead) as problem:
        return Finding(_SUBJECT, f"{file} cannot be read: {problem}", "restore the right file (docs/master-key.md)")
    kinds = kinds_of(settings.environment)
    if head is None:
        if kinds:
            cure = f"seal it with `custody keys lock`, or unset {SOURCE}"
            return Finding(_SUBJECT, f"{file} is not sealed, though {SOURCE} is set", cure)
        return Finding(_SUBJECT, "none: the file is plain, so a copy of it opens everything (docs/master-key.md)")
    there = [f"{one.kind} {one.name}" for one in head.holders]
    found = f"{', '.join(there)} (file {head.file})"
    if not kinds:
        names = ",".join(dict.fromkeys(one.kind for one in head.holders))
        return Finding(_SUBJECT, f"{found}, and {SOURCE} names none", f"set {SOURCE}, for example to {names}")
    if idle := [kind for kind in kinds if kind not in {one.kind for one in head.holders}]:
        return Finding(_SUBJECT, f"{found}; {SOURCE} names {idle[0]}, which is none of them", f"correct {SOURCE}")
    if not {one.kind for one in head.holders} & set(OUTSIDE):
        cure = "add one of your own: `custody keys holders --add recovery`"
        return Finding(_SUBJECT, f"{found}: a provider alone can open it", cure)
    return Finding(_SUBJECT, found)


def answers(settings: Settings) -> Finding:
    """Each holder that needs no person opens the file."""
    if not kinds_of(settings.environment):
        return Finding(_SUBJECT, "none to ask: the file is plain")
    said = locking.check(settings)
    if said is None:
        return Finding(_SUBJECT, "each that needs no person opens the file")
    return Finding(_SUBJECT, said, "see docs/master-key.md for its kind")
