"""Random documents of the XML that identity providers write, with all that is awkward in it, by a random generator."""

from random import Random

NAMESPACES = ("urn:a", "urn:b", "http://example.com/a#b")
_PREFIXES = ("", "a", "b", "xs")
_NAMES = ("a", "B", "_c", "d-1.x")
_AWKWARD = "<>&\"'\t\n\r] \u0085\u2028\ud7ff\ue000\ufffd\U00010000\u00e9"
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "'": "&apos;"}
_HEADS = ("", "\ufeff", '<?xml version="1.0"?>\r\n', "<?xml version='1.0' encoding='utf-8'?>", "\n")


def document(random: Random, depth: int = 3) -> bytes:
    """A whole document."""
    return (random.choice(_HEADS) + element(random, {}, depth) + random.choice(("", "\n", " \t\r\n"))).encode()


def element(random: Random, scope: dict[str, str], depth: int) -> str:
    """An element where these namespaces are in scope."""
    declared = {random.choice(_PREFIXES): random.choice(NAMESPACES) for _ in range(random.randrange(3))}
    scope = scope | declared
    prefix = random.choice(["", *scope])
    name = f"{prefix}:{random.choice(_NAMES)}" if prefix else random.choice(_NAMES)
    written = [f'xmlns:{one}="{uri}"' if one else f"xmlns='{uri}'" for one, uri in declared.items()]
    used = set()
    for _ in range(random.randrange(4)):
        owner = random.choice(["", "xml", *(one for one in scope if one)])
        local = random.choice(_NAMES)
        if (scope.get(owner, owner) if owner else "", local) not in used:
            used.add((scope.get(owner, owner) if owner else "", local))
            value = _spell(random, '<&"\r')
            written.append(f'{owner}:{local}="{value}"' if owner else f'{local} = "{value}"')
    random.shuffle(written)
    inside = ""
    for _ in range(random.randrange(4) if depth else 0):
        inside += element(random, scope, depth - 1) if random.random() < 0.6 else _spell(random, "<&>")
    tag = " ".join([name, *written]) + random.choice(("", " ", "\n"))
    return f"<{tag}>{inside}</{name}>" if inside or random.random() < 0.5 else f"<{tag}/>"


def _spell(random: Random, forbidden: str) -> str:
    """A text as somebody may write it: each character as itself, where it may stand, or as one of its references."""
    out = ""
    for _ in range(random.randrange(8)):
        letter = random.choice(_AWKWARD) if random.random() < 0.6 else chr(random.randrange(32, 127))
        ways = [f"&#{ord(letter)};", f"&#x{ord(letter):X};"] + ([_NAMED[letter]] if letter in _NAMED else [])
        out += random.choice(ways) if letter in forbidden or random.random() < 0.2 else letter
    return out


def change_place(random: Random, content: bytes) -> bytes:
    """The same bytes, but for one place."""
    at = random.randrange(len(content) + 1)
    junk = random.choice(
        (b"", b"<", b">", b"&", b'"', b"/", b" ", b"xmlns:a='urn:c' ", b"<!---->", random.randbytes(1))
    )
    return content[:at] + junk + content[at + random.randrange(3) :]
