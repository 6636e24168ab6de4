"""Draws the mutants of a file: every copy of it with one spot changed. The changes are mutmut's, and four others."""

import difflib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, ParentNodeProvider, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_match

ROOT = Path(__file__).parents[2]
# What decides whether an order is signed, and by whose word, and needs no process for it.
SCOPE = (
    "api/http/hardening.py",
    "api/http/idempotency.py",
    "api/http/single_headers.py",
    "signer/authority.py",
    "signer/evaluate.py",
    "signer/votes.py",
    "custody/identity/assertions.py",
    "custody/identity/quorums.py",
    "custody/identity/request_signature.py",
    "custody/worker/proofs.py",
    "custody/policies/*.py",
    "custody/policies/kinds/*.py",
    "custody/chains/message*.py",
    "custody/chains/evm/abi.py",
    "custody/chains/evm/calldata.py",
    "custody/chains/evm/selectors.py",
    "custody/chains/evm/typed_*.py",
    "custody/chains/evm/wrappers.py",
    "custody/chains/solana/effects.py",
    "custody/chains/solana/instructions.py",
    "custody/chains/bitcoin/effects.py",
    "custody/chains/bitcoin/spends.py",
)
# Their arguments are types or words for the contract; `len` and `isinstance` of None only ever fail.
_NOT_INSIDE = m.Call(func=m.OneOf(*(m.Name(name) for name in ("described", "Meta", "TypeVar", "len", "isinstance"))))
# That nothing sets a field of what is frozen, and that no field is given by its place, mypy sees already.
_SEEN_BY_MYPY = m.Arg(keyword=m.OneOf(m.Name("frozen"), m.Name("kw_only")))
# Types under another name.
_ALIAS = m.Assign(value=m.Subscript(value=m.OneOf(m.Name("Literal"), m.Name("Annotated"))))
# A field that was left out: null is the same, or refused by its type.
_LEFT_OUT = m.AnnAssign(value=m.Name("UNSET"))
_NONE = m.Name("None")
# These two of mutmut's are drawn here instead: an argument becomes None only, and a case is cut where it stands.
_LEFT = (operator_arg_removal, operator_match)
_SWAPPED = {"all": "any", "any": "all", "min": "max", "max": "min"}


class Mutant(NamedTuple):
    """A file with one spot changed, and its name: where the spot is, and how its lines read before and after."""

    file: str
    # The function or class around it, as `Class.method`; `-` is the module.
    where: str
    before: str
    after: str
    # 2 and up where one function has several spots that read alike.
    same: int
    lines: range
    # Whether the change is in a function that exists already when the tests begin; else the module is loaded again.
    within: bool
    source: str

    @property
    def name(self) -> tuple[str, str, str, str, int]:
        """Name that identifies it for as long as its own line stands."""
        return self.file, self.where, self.before, self.after, self.same


def files() -> list[str]:
    """The files that mutants are drawn from."""
    found = {path.relative_to(ROOT).as_posix() for pattern in SCOPE for path in ROOT.glob(pattern)}
    return sorted(file for file in found if not file.endswith("__init__.py"))


def draw_mutants(file: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    source = (ROOT / file).read_bytes()
    wrapper = cst.MetadataWrapper(cst.parse_module(source))
    visitor = _Spots()
    wrapper.visit(visitor)
    seen, alike = {source}, Counter[tuple[str, str, str]]()
    for spot in sorted(visitor.spots, key=lambda spot: (spot.span.start, spot.span.length)):
        first, end = spot.span.start, spot.span.start + spot.span.length
        text = _code(wrapper.module, spot).encode()
        changed = source[:first] + text + source[end:]
        if changed in seen:
            continue
        seen.add(changed)
        # From the beginning of the first line to the end of the last.
        opens, closes = source.rfind(b"\n", 0, first) + 1, source.find(b"\n", end)
        before, after = _difference(source[opens:closes], source[opens:first] + text + source[end:closes])
        alike[spot.where, before, after] += 1
        same = alike[spot.where, before, after]
        yield Mutant(file, spot.where, before, after, same, spot.lines, spot.within, changed.decode())


class _Spot(NamedTuple):
    node: cst.CSTNode
    # None where the node is gone.
    changed: cst.CSTNode | None
    span: CodeSpan
    where: str
    lines: range
    within: bool


def _code(module: cst.Module, spot: _Spot) -> str:
    node, changed = spot.node, spot.changed
    if changed is None:
        return ""
    # The span of an expression is what stands between its own parentheses.
    if isinstance(node, cst.BaseExpression) and isinstance(changed, cst.BaseExpression) and changed.lpar is node.lpar:
        changed = changed.with_changes(lpar=[], rpar=[])
    code = module.code_for_node(changed)
    return code if isinstance(node, cst.ComparisonTarget) else code.strip()


def _difference(before: bytes, after: bytes) -> tuple[str, str]:
    """The lines that differ, before and after, each on one line."""
    old, new = before.decode().splitlines(), after.decode().splitlines()
    changes = [code[1:] for code in difflib.SequenceMatcher(None, old, new, False).get_opcodes() if code[0] != "equal"]
    return (
        " ".join(line.strip() for first, last, _, _ in changes for line in old[first:last]),
        " ".join(line.strip() for _, _, first, last in changes for line in new[first:last]),
    )


class _Spots(m.MatcherDecoratableVisitor):
    """Every spot of a file that may be changed, and each change of it."""

    METADATA_DEPENDENCIES = (PositionProvider, ByteSpanPositionProvider, ParentNodeProvider)

    def __init__(self) -> None:
        super().__init__()
        self.spots: list[_Spot] = []
        self._around: list[str] = []
        # How many functions are around: their bodies alone run when a test runs.
        self._bodies = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Take down the changes of a node, and go on into it unless all in it is for people or for types."""
        if _for_people_or_types(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._around.append(node.name.value)
        if isinstance(node, cst.IndentedBlock) and isinstance(self._parent(node), cst.FunctionDef):
            self._bodies += 1
        parent = self._parent(node)
        # A keyword of a class is no argument that could be None.
        bare = isinstance(parent, cst.Arg) and isinstance(self._parent(parent), cst.ClassDef)
        for changed in _changes(node, None if bare else parent):
            self._take(node, changed)
        # What is raised is text; that it is raised is what counts.
        return not isinstance(node, cst.Raise)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Leave a function or class."""
        if _for_people_or_types(original_node):
            return
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._around.pop()
        if isinstance(original_node, cst.IndentedBlock) and isinstance(self._parent(original_node), cst.FunctionDef):
            self._bodies -= 1

    def _parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.get_metadata(ParentNodeProvider, node, None)

    def _take(self, node: cst.CSTNode, changed: cst.CSTNode | None) -> None:
        # The lines that a test must run: of a statement with a body, only those of the spot in its head.
        ran, above = node, self._parent(node)
        while above is not None and not isinstance(ran, cst.BaseSmallStatement):
            if isinstance(above, cst.BaseCompoundStatement | cst.BaseSuite):
                break
            ran, above = above, self._parent(above)
        position = self.get_metadata(PositionProvider, ran)
        lines = range(position.start.line, position.end.line + 1)
        span = self.get_metadata(ByteSpanPositionProvider, node)
        self.spots.append(_Spot(node, changed, span, ".".join(self._around) or "-", lines, self._bodies > 0))


def _for_people_or_types(node: cst.CSTNode) -> bool:
    """Say whether nothing in it can change what is judged: annotations, and sentences (strings with spaces)."""
    if isinstance(node, cst.Annotation | cst.TypeAlias | cst.Decorator | cst.Import | cst.ImportFrom):
        return True
    if isinstance(node, cst.SimpleString):
        return " " in node.value or node.value.startswith(('"""', 'r"""'))
    if isinstance(node, cst.FormattedString):
        return any(isinstance(part, cst.FormattedStringText) and " " in part.value for part in node.parts)
    if isinstance(node, cst.ConcatenatedString):
        return _for_people_or_types(node.left) or _for_people_or_types(node.right)
    return any(m.matches(node, one) for one in (_NOT_INSIDE, _SEEN_BY_MYPY, _ALIAS, _LEFT_OUT))


def _changes(node: cst.CSTNode, parent: cst.CSTNode | None) -> Iterator[cst.CSTNode | None]:
    for kind, operator in mutation_operators:
        if isinstance(node, kind) and operator not in _LEFT:
            changes = operator(node)
            # Of a string mutmut draws three; that it is another one is enough.
            yield from list(changes)[:1] if isinstance(node, cst.BaseString) else changes
    if isinstance(parent, cst.Arg) and node is parent.value and parent.star == "" and not m.matches(node, _NONE):
        yield cst.Name("None")
    if isinstance(node, cst.Call):
        yield from _without_an_argument(node)
        if isinstance(node.func, cst.Name) and node.func.value in _SWAPPED:
            yield node.with_changes(func=cst.Name(_SWAPPED[node.func.value]))
    if isinstance(node, cst.BooleanOperation):
        yield from (node.left, node.right)
    if isinstance(node, cst.MatchCase) and isinstance(parent, cst.Match) and len(parent.cases) > 1:
        yield None
    if isinstance(parent, cst.If | cst.CompIf | cst.While) and node is parent.test:
        yield cst.BooleanOperation(_in_parentheses(node), cst.And(), cst.Name("False"))
        # A loop that never ends says nothing.
        if not isinstance(parent, cst.While):
            yield cst.BooleanOperation(_in_parentheses(node), cst.Or(), cst.Name("True"))
    if isinstance(node, cst.Raise):
        yield cst.Pass()


def _without_an_argument(node: cst.Call) -> Iterator[cst.Call]:
    """Leave out one that may have a default: what is passed by name, and the last."""
    for number, given in enumerate(node.args):
        if given.keyword is not None or (number == len(node.args) - 1 and number > 0):
            yield node.with_changes(args=[*node.args[:number], *node.args[number + 1 :]])


def _in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()])
