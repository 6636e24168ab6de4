"""Keys and addresses below one root, as the BIPs publish them and as embit derives them."""

import hashlib
import hmac
import random

import coincurve
import pytest
from embit import bip39
from embit.bip32 import HDKey

from custody.chains.bitcoin import hashes
from custody.chains.bitcoin.addresses import address_of
from custody.chains.bitcoin.keys import Root, account_of, child, fingerprint, private_key, public_below, root_of
from custody.chains.bitcoin.scope import parse_scope
from custody.chains.bitcoin.scripts import script_of
from custody.chains.bitcoin.types import Account

WORDS = " ".join(["abandon"] * 11 + ["about"])
# The fourth vector of BIP-32, whose seed has 32 bytes; its keys begin with zeros.
BIP_32_SEED = bytes.fromhex("3ddd5602285899a946114506157c7997e5444528f3003f6134712147db19b678")
BIP_32_ROOT = (
    "xprv9s21ZrQH143K48vGoLGRPxgo2JNkJ3J3fqkirQC2zVdk5Dgd5w14S7fRDyHH4dWNHUgkvsvNDCkvAwcSHNAQwhwgNMgZhLtQC63zxwhQmRv"
)
ADDRESSES = [
    ("bitcoin:mainnet:p2wpkh:0:0:0", "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"),
    ("bitcoin:mainnet:p2wpkh:0:0:1", "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g"),
    ("bitcoin:mainnet:p2wpkh:0:1:0", "bc1q8c6fshw2dlwun7ekn9qwf37cu2rn755upcp6el"),
    ("bitcoin:mainnet:p2tr:0:0:0", "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr"),
    ("bitcoin:mainnet:p2tr:0:0:1", "bc1p4qhjn9zdvkux4e44uhx8tc55attvtyu358kutcqkudyccelu0was9fqzwh"),
    ("bitcoin:mainnet:p2tr:0:1:0", "bc1p3qkhfews2uk44qtvauqyr2ttdsw7svhkl9nkm9s9c3x4ax5h60wqwruhk7"),
    ("bitcoin:testnet:p2sh-p2wpkh:0:0:0", "2Mww8dCYPUpKHofjgcXcBCEGmniw9CoaiD2"),
    ("bitcoin:mainnet:p2pkh:0:0:0", "1LqBGSKuX5yYUonjxT5qGfpUsXKYYWeabA"),
]


def root_of_words() -> Root:
    """The root that the words of the BIPs lead to: their seed has 64 bytes, and those of this project 32."""
    made = hmac.digest(b"Bitcoin seed", bip39.mnemonic_to_seed(WORDS), "sha512")
    return Root(coincurve.PrivateKey(made[:32]), made[32:])


def test_the_fourth_vector_of_bip_32_is_its_root() -> None:
    root, published = root_of(BIP_32_SEED), HDKey.from_string(BIP_32_ROOT)

    assert (root.key.secret, root.chain_code) == (published.key.secret, published.chain_code)


@pytest.mark.parametrize(("text", "address"), ADDRESSES, ids=[text for text, _ in ADDRESSES])
def test_a_published_address_is_made(text: str, address: str) -> None:
    """Of BIP-84, 86 and 49, and of BIP-44 as wallets show it."""
    scope, root = parse_scope(text), root_of_words()

    public_key = child(account_of(root, scope.account_path), scope.change, scope.index)

    assert address_of(script_of(scope.address_type, public_key), scope.network) == address


def test_public_and_private_derivation_and_embit_agree() -> None:
    chosen = random.Random(32)
    for _ in range(30):
        seed = chosen.randbytes(32)
        root, theirs = root_of(seed), HDKey.from_seed(seed)
        path = (chosen.choice((44, 49, 84, 86)), chosen.choice((0, 1)), chosen.choice((0, 7, 2**31 - 1)))
        branch, index = chosen.choice((0, 1)), chosen.choice((0, 1, 9_999, 2**31 - 1))

        public_key = child(account_of(root, path), branch, index)

        derived = theirs.derive([*(number + 2**31 for number in path), branch, index])
        assert derived.key.get_public_key().serialize() == public_key
        assert private_key(root, path, branch, index).public_key.format() == public_key
        assert fingerprint(root) == theirs.my_fingerprint


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_a_seed_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        root_of(bytes(length))


def test_a_root_tells_nothing_of_itself() -> None:
    root = root_of(BIP_32_SEED)

    assert repr(root) == "Root()"
    assert not hasattr(root, "__dict__")


def test_the_key_above_is_found_from_a_public_one_and_a_private_one_below_it() -> None:
    """Why no private key below an account may ever leave: with the account's public half it gives away its key."""
    root, path = root_of(BIP_32_SEED), (84, 0, 0)
    account = account_of(root, path)
    branch: Account = public_below(account, 0)
    offset = hmac.digest(branch.chain_code, branch.public_key + bytes(4), "sha512")[:32]

    below = private_key(root, path, 0, 0)
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    above = coincurve.PrivateKey.from_int((below.to_int() - int.from_bytes(offset)) % order)

    assert above.public_key.format() == branch.public_key


def test_ripemd_is_the_same_without_openssls() -> None:
    for content in (b"", b"abc", bytes(1_000)):
        assert hashes._portable(hashlib.sha256(content).digest()) == hashes.hash160(content)
    # As RIPEMD-160's authors publish it.
    assert hashes._portable(b"abc").hex() == "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"
