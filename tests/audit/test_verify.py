"""`custody audit verify`: an untouched export passes, and whatever is done to the file is named. docs/audit.md."""

import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.audit import leaf, tree, verify
from custody.audit.checkpoint import Checkpoint, open_note, origin_of, sign_note
from custody.audit.lines import LastLine, RowLine, encode_line
from tests.audit.sealed import Log, command, join_lines, lines, verify_export

VECTORS = msgspec.json.decode((Path(__file__).parents[1] / "vectors/audit_log.json").read_bytes())


def test_an_untouched_export_is_good(log: Log, tmp_path: Path) -> None:
    status, said = verify_export(tmp_path, log.export(), log.jwks)

    assert status == 0
    assert f"/audit/{log.tenant.id}\n" in said
    assert "rows        0 to 8, unchanged, none missing between them" in said
    assert "signature   good" in said


def test_a_filtered_export_says_what_it_does_not_show(log: Log, tmp_path: Path) -> None:
    status, said = verify_export(tmp_path, log.export(actionPrefix="agent."), log.jwks)

    assert (status, "the export was filtered" in said) == (0, True)


def test_without_a_key_the_signature_counts_for_nothing(log: Log, tmp_path: Path) -> None:
    status, said = verify_export(tmp_path, log.export(), None)

    assert (status, "NOT CHECKED" in said) == (3, True)


def test_another_services_key_or_a_token_key_does_not_fit(log: Log, tmp_path: Path) -> None:
    keys = msgspec.json.decode(log.jwks)["keys"]
    token = next(key for key in keys if key["use"] == "sig")
    receipt = next(key for key in keys if key["use"] == "receipt")
    for key in (token, receipt):
        forged = msgspec.json.encode({"keys": [key | {"use": "checkpoint"}]})
        assert verify_export(tmp_path, log.export(), forged)[0] == 1

    status, said = verify_export(tmp_path, log.export(), msgspec.json.encode({"keys": [token]}))
    assert (status, "no key whose use is checkpoint" in said) == (2, True)
    status, said = verify_export(tmp_path, log.export(), b"no keys")
    assert (status, "not a JWK set" in said) == (2, True)


def test_an_earlier_checkpoint_is_gone_on_from(log: Log, tmp_path: Path) -> None:
    kept, size = tmp_path / "kept", open_note(log.note, log.keys).size
    kept.write_text(log.note)
    log.act(3)
    log.seal()

    whole = verify_export(tmp_path, log.export(), log.jwks, "--checkpoint", str(kept))
    part = verify_export(tmp_path, log.export(action="tx.signed", since=size), log.jwks, "--checkpoint", str(kept))
    silent = verify_export(tmp_path, log.export(action="tx.signed"), log.jwks, "--checkpoint", str(kept))

    assert (whole[0], part[0], silent[0]) == (0, 0, 2)
    assert f"the log extends the checkpoint of {size} rows" in part[1]
    assert f"export again with since={size}" in silent[1]


KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
ORIGIN = "custody.example.com/audit/acme"


def export_rows(size: int) -> bytes:
    """The first rows of the vectors as an export, under their key."""
    rows = [msgspec.convert(vector["row"], leaf.Row) for vector in VECTORS["rows"][:size]]
    head = Checkpoint(ORIGIN, size, bytes.fromhex(VECTORS["roots"][size - 1]))
    last = LastLine(
        checkpoint=sign_note(head, PUBLIC, KEY.sign),
        begin=0,
        filtered=False,
        next=None,
        proof=[],
        since=None,
        consistency=[],
    )
    return join_lines([*(encode_line(RowLine(index=at, row=row)) for at, row in enumerate(rows)), encode_line(last)])


@pytest.mark.parametrize(
    ("origin", "size", "root", "said"),
    [
        (ORIGIN, 3, VECTORS["roots"][2], None),
        (ORIGIN, 5, VECTORS["roots"][4], None),
        (ORIGIN, 3, "01" * 32, "its first 3 rows differ"),
        (ORIGIN, 5, "01" * 32, "its first 5 rows differ"),
        (ORIGIN, 6, "01" * 32, "The log is shorter than it was: 5 rows, and the earlier checkpoint covers 6"),
        ("custody.example.com/audit/other", 3, VECTORS["roots"][2], "of another log"),
    ],
    ids=["a beginning", "the same", "another beginning", "another whole", "longer", "another tenant"],
)
def test_an_earlier_checkpoint_of_another_history_is_told(origin: str, size: int, root: str, said: str | None) -> None:
    kept = sign_note(Checkpoint(origin, size, bytes.fromhex(root)), PUBLIC, KEY.sign)

    if said is None:
        assert verify.verify(export_rows(5), [PUBLIC], kept).goes_on_from == size
    else:
        with pytest.raises(verify.Wrong, match=said):
            verify.verify(export_rows(5), [PUBLIC], kept)


def _change(parts: list[bytes], chance: random.Random) -> list[bytes]:
    at = chance.randrange(len(parts))
    place = chance.randrange(len(parts[at]))
    letter = bytes([parts[at][place] ^ (1 << chance.randrange(7))])
    return [*parts[:at], parts[at][:place] + letter + parts[at][place + 1 :], *parts[at + 1 :]]


def _delete(parts: list[bytes], chance: random.Random) -> list[bytes]:
    at = chance.randrange(len(parts))
    return parts[:at] + parts[at + 1 :]


def _insert(parts: list[bytes], chance: random.Random) -> list[bytes]:
    at, source = chance.randrange(len(parts)), chance.randrange(len(parts) - 1)
    return [*parts[:at], parts[source], *parts[at:]]


def _swap(parts: list[bytes], chance: random.Random) -> list[bytes]:
    one, other = chance.sample(range(len(parts)), 2)
    found = list(parts)
    found[one], found[other] = parts[other], parts[one]
    return found


def _cut(parts: list[bytes], chance: random.Random) -> list[bytes]:
    whole = join_lines(parts)
    return [whole[: chance.randrange(len(whole))]]


@pytest.mark.parametrize("mutate", [_change, _delete, _insert, _swap, _cut], ids=lambda one: one.__name__)
@pytest.mark.parametrize("query", [{}, {"actionPrefix": "tx."}], ids=["whole", "filtered"])
def test_whatever_is_done_to_the_file_is_found(log: Log, mutate: object, query: dict[str, str]) -> None:
    parts, chance = lines(log.export(**query)), random.Random(11)
    assert log.problem(join_lines(parts)) is None

    tried = [join_lines(mutate(parts, chance)) for _ in range(60)]  # type: ignore[operator]

    assert [content for content in tried if content != join_lines(parts) and log.problem(content) is None] == []


def test_a_row_of_another_log_under_its_index_is_no_row_of_this_one(log: Log) -> None:
    parts = lines(log.export())
    first = msgspec.json.decode(parts[0])
    first["row"]["tenant_id"] = "another"

    assert "belongs to a different log" in str(
        log.problem(join_lines([msgspec.json.encode(first) + b"\n", *parts[1:]]))
    )


@pytest.mark.parametrize(
    "content",
    [
        b"no json\n",
        b"{}\n",
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
        b'{"type":"checkpoint"}\n',
        b"null\n",
        b"tenant_id,seq\nacme,1\n",
        b'{"ok":false,"error":"x"}',
    ],
    ids=["words", "an object", "nested", "no text", "nothing in it", "null", "csv", "an error"],
)
def test_a_file_that_is_no_export_is_not_called_tampered_with(tmp_path: Path, content: bytes) -> None:
    keys = msgspec.json.encode({"keys": [VECTORS["jwk"]]})

    status, said = verify_export(tmp_path, content, keys)

    assert (status, "Not an NDJSON export" in said) == (2, True)


@pytest.mark.parametrize("content", [b"", b"\n"], ids=["nothing", "a line end"])
def test_an_empty_file_is_called_empty(tmp_path: Path, content: bytes) -> None:
    status, said = verify_export(tmp_path, content, msgspec.json.encode({"keys": [VECTORS["jwk"]]}))

    assert (status, "The file is empty" in said) == (2, True)


@pytest.mark.parametrize("left", [-1, -2, 2000], ids=["the line end", "a bracket", "the later part"])
def test_an_export_that_was_cut_off_is_wrong(tmp_path: Path, left: int) -> None:
    status, said = verify_export(tmp_path, export_rows(5)[:left], msgspec.json.encode({"keys": [VECTORS["jwk"]]}))

    assert (status, "truncated" in said) == (1, True)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    status, said = command("audit", "verify", str(tmp_path / "absent"))

    assert (status, "No such file" in said) == (2, True)


def test_it_loads_nothing_that_opens_a_network_or_a_database() -> None:
    look = (
        "import sys; from ops import main; main.main(['audit', 'verify', '/dev/null']); "
        "print(sorted({'asyncpg', 'httpx', 'sanic', 'tortoise', 'custody.protocol.client'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-P", "-c", look], capture_output=True, text=True, timeout=30, check=True)

    assert said.stdout.splitlines() == ["[]"]


# ---- the vectors, which docs/audit.md names


@pytest.mark.parametrize("vector", VECTORS["rows"], ids=lambda vector: str(vector["row"]["seq"]))
def test_a_row_is_hashed_as_the_page_says(vector: dict[str, object]) -> None:
    row = msgspec.convert(vector["row"], leaf.Row)

    assert leaf.canonical(row).hex() == vector["canonical"]
    assert leaf.hash_of(row).hex() == vector["leaf"]


def test_a_raw_row_is_hashed_in_a_form_of_its_own() -> None:
    row = msgspec.convert(VECTORS["raw_row"]["row"], leaf.Row)

    assert leaf.raw_hash_of(row).hex() == VECTORS["raw_row"]["leaf"] != leaf.hash_of(row).hex()


def test_the_vectors_roots_and_proofs() -> None:
    leaves = [bytes.fromhex(row["leaf"]) for row in VECTORS["rows"]]
    for size, root in enumerate(VECTORS["roots"], 1):
        assert tree.root(tree.append(0, (), leaves[:size])[0]).hex() == root
    shown = {number: leaves[number] for number in VECTORS["inclusion"]["shown"]}
    proof = [bytes.fromhex(one) for one in VECTORS["inclusion"]["proof"]]
    assert tree.root_of(len(leaves), shown, proof).hex() == VECTORS["roots"][-1]
    going_on = VECTORS["consistency"]
    proof = [bytes.fromhex(one) for one in going_on["proof"]]
    old, new = (bytes.fromhex(VECTORS["roots"][size - 1]) for size in (going_on["old"], len(leaves)))
    assert tree.goes_on(going_on["old"], old, len(leaves), new, proof)


def test_the_vectors_note_is_signed_by_its_key() -> None:
    found = open_note(VECTORS["note"], verify.checkpoint_keys(msgspec.json.encode({"keys": [VECTORS["jwk"]]})))

    assert found.size == len(VECTORS["rows"])
    assert found.root.hex() == VECTORS["roots"][-1]
    assert found.origin == origin_of("https://custody.example.com", "acme")
