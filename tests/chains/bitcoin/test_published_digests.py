"""Digests that signatures are made over, as BIP-143 and BIP-341 publish them, and the forms of a signature."""

import hashlib
from base64 import b64encode

import coincurve
import pytest

from custody.chains.bitcoin import psbt as psbts
from custody.chains.bitcoin.scope import parse_scope
from custody.chains.bitcoin.scripts import output_key, script_of
from custody.chains.bitcoin.sighash import Digests
from custody.chains.bitcoin.sign import _tweak, check_signatures
from custody.chains.bitcoin.types import OwnKey, Spend, TxOut
from tests.chains.bitcoin.wallet import STRANGER, TYPES, Fields, payment, prove_psbt, sign_spend, with_size

NATIVE = (
    "0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffffffef51e1b804cc89d182d2"
    "79655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c9"
    "5a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac11000000"
)
NESTED = (
    "0100000001db6b1b20aa0fd7b23880be2ecbd4a98130974cf4748fb66092ac4d3ceb1a54770100000000feffffff02b8b4eb0b000000001976"
    "a914a457b684d7f0d539a46a45bbc043f35b59d0d96388ac0008af2f000000001976a914fd270b1ee6abcaea97fea7ad0402e8bd8ad6d77c88"
    "ac92040000"
)
TAPROOT = (
    "02000000097de20cbff686da83a54981d2b9bab3586f4ca7e48f57f5b55963115f3b334e9c010000000000000000d7b7cab57b1393ace2d0"
    "64f4d4a2cb8af6def61273e127517d44759b6dafdd990000000000fffffffff8e1f583384333689228c5d28eac13366be082dc57441760d9"
    "57275419a418420000000000fffffffff0689180aa63b30cb162a73c6d2a38b7eeda2a83ece74310fda0843ad604853b0100000000feffff"
    "ffaa5202bdf6d8ccd2ee0f0202afbbb7461d9264a25e5bfd3c5a52ee1239e0ba6c0000000000feffffff956149bdc66faa968eb2be2d2faa"
    "29718acbfe3941215893a2a3446d32acd050000000000000000000e664b9773b88c09c32cb70a2a3e4da0ced63b7ba3b22f848531bbb1d5d"
    "5f4c94010000000000000000e9aa6b8e6c9de67619e6a3924ae25696bb7b694bb677a632a74ef7eadfd4eabf0000000000ffffffffa778eb"
    "6a263dc090464cd125c466b5a99667720b1c110468831d058aa1b82af10100000000ffffffff0200ca9a3b000000001976a91406afd46bcd"
    "fd22ef94ac122aa11f241244a37ecc88ac807840cb0000000020ac9a87f5594be208f8532db38cff670c450ed2fea8fcdefcc9a663f78bab"
    "962b0065cd1d"
)
TAPROOT_COINS = [
    ("512053a1f6e454df1aa2776a2814a721372d6258050de330b3c6d10ee8f4e0dda343", 420_000_000),
    ("5120147c9c57132f6e7ecddba9800bb0c4449251c92a1e60371ee77557b6620f3ea3", 462_000_000),
    ("76a914751e76e8199196d454941c45d1b3a323f1433bd688ac", 294_000_000),
    ("5120e4d810fd50586274face62b8a807eb9719cef49c04177cc6b76a9a4251d5450e", 504_000_000),
    ("512091b64d5324723a985170e4dc5a0f84c041804f2cd12660fa5dec09fc21783605", 630_000_000),
    ("00147dd65592d0ab2fe0d0257d571abf032cd9db93dc", 378_000_000),
    ("512075169f4001aa68f15bbed28b218df1d0a62cbbcf1188c6665110c293c907b831", 672_000_000),
    ("5120712447206d7a5238acc7ff53fbe94a3b64539ad291c7cdbc490b7577e4b17df5", 546_000_000),
    ("512077e30a5522dd9f894c3f8b8bd4c4b2cf82ca7da8a3ea6a239655c39c050ab220", 588_000_000),
]


def digests(unsigned: str, coins: list[tuple[str, int]]) -> Digests:
    """Of a published transaction with two outputs, whose inputs are nobody's here."""
    # embit would write a sequence of 0 as 0xffffffff.
    raw = bytes.fromhex(unsigned)
    maps = b"\1\0" + with_size(raw) + b"\0" * (1 + len(coins) + 2)
    psbt = psbts.read(b64encode(b"psbt\xff" + maps).decode())
    assert psbt.unsigned == raw
    found = tuple(TxOut(amount, bytes.fromhex(script)) for script, amount in coins)
    return Digests(
        Spend(
            psbt=psbt,
            scope=parse_scope("bitcoin:mainnet:p2wpkh:0:0:0"),
            coins=found,
            own=(),
            foreign=(),
            payments=(),
            change=(),
            fee=0,
            weight=0,
        )
    )


def key_of(public_key: str) -> OwnKey:
    """A published key."""
    return OwnKey(0, 0, bytes.fromhex(public_key))


def test_bip_143_native() -> None:
    key = key_of("025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357")
    script = script_of("p2wpkh", key.public_key).hex()
    assert script == "00141d0f172a0ecb48aee1be1f2687d2963ae33f71a1"

    # The first coin is of another kind, and no part of what the second input signs.
    digest = digests(NATIVE, [("51", 625_000_000), (script, 600_000_000)]).of(1, key, 1)

    assert digest.hex() == "c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670"


def test_bip_143_nested() -> None:
    key = key_of("03ad1d8e89212f0b92c74d23bb710c00662ad1470198ac48c43f7d6f93a2a26873")
    script = script_of("p2sh-p2wpkh", key.public_key).hex()
    assert script == "a9144733f37cf4db86fbc2efed2500b4f4e49f31202387"

    digest = digests(NESTED, [(script, 1_000_000_000)]).of(0, key, 1)

    assert digest.hex() == "64f3b0f4dd2bb3aa1ce8566d220cc74dda9df97d8490cc81d89d735c92e59fb6"


@pytest.mark.parametrize(
    ("position", "sighash", "expected"),
    [
        (3, 1, "bf013ea93474aa67815b1b6cc441d23b64fa310911d991e713cd34c7f5d46669"),
        (4, 0, "4f900a0bae3f1446fd48490c2958b5a023228f01661cda3496a11da502a7f7ef"),
    ],
)
def test_bip_341_over_every_amount_and_script(position: int, sighash: int, expected: str) -> None:
    digest = digests(TAPROOT, TAPROOT_COINS).of(position, key_of("02" + "00" * 32), sighash)

    assert digest.hex() == expected


def test_bip_341_tweaks_a_key_without_a_tree() -> None:
    """The first input of its vectors; its internal key has an odd y, so the secret is negated before the tweak."""
    key = coincurve.PrivateKey.from_hex("6b973d88838f27366ed61c9ad6367663045cb456e28335c109e30717ae0c6baa")
    public_key = key.public_key.format()

    assert public_key[1:].hex() == "d6889cb081036e0faefa3a35157ad71086b123b2b144b649798b494c300a961d"
    assert _tweak(key).to_hex() == "2405b971772ad26915c8dcdf10f238753a9b837e5f8e6a86fd7c0cce5b7296d9"
    assert script_of("p2tr", public_key).hex() == TAPROOT_COINS[0][0]


def test_keys_of_either_parity_are_tweaked_to_what_their_script_pays() -> None:
    parities = set()
    for number in range(16):
        key = coincurve.PrivateKey(hashlib.sha256(bytes((number,))).digest())
        parities.add(key.public_key.format()[0])
        assert _tweak(key).public_key.format()[1:] == output_key(key.public_key.format())
    assert parities == {2, 3}


@pytest.mark.parametrize("kind", TYPES)
def test_nothing_but_the_signatures_is_taken_for_them(kind: str) -> None:
    found = prove_psbt(payment(kind, inputs=2), kind)
    first, second = sign_spend(found).signatures

    check_signatures(found, (first, second))

    # Changed where they stand: one signature by Schnorr in 256 ends in any byte that is put there.
    flipped, retyped = (
        first[:at] + bytes((first[at] ^ bit,)) + first[at + 1 :] for at, bit in ((40, 1), (len(first) - 1, 2))
    )
    for wrong in (b"", b"\x01", first[:-1], first + b"\x00", first + b"\x01", flipped, retyped, second):
        with pytest.raises(ValueError, match=r"signature|DER"):
            check_signatures(found, (wrong, second))
    for few in ((), (first,), (first, second, second)):
        with pytest.raises(ValueError, match="as many"):
            check_signatures(found, few)


@pytest.mark.parametrize("kind", TYPES)
def test_another_root_signs_nothing(kind: str) -> None:
    with pytest.raises(ValueError, match="another root"):
        sign_spend(prove_psbt(payment(kind), kind), STRANGER)


def test_a_signature_that_says_default_is_not_taken_with_the_byte_written_out() -> None:
    found = prove_psbt(Fields(payment("p2tr").serialize()).put(1, b"\3", bytes(4)).raw(), "p2tr")
    (made,) = sign_spend(found).signatures
    assert len(made) == 64

    with pytest.raises(ValueError, match="does not hold"):
        check_signatures(found, (made + b"\x00",))
