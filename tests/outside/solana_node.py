"""A Solana node for tests: JSON-RPC over litesvm, which executes the real programs and checks signatures."""

import base64
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import httpx
from solders.account import Account
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.token.associated import get_associated_token_address
from solders.token.state import Mint, TokenAccount, TokenAccountState
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata

from ops.local_chain.json_rpc import INVALID_PARAMS, JsonRpcServer, Method, RpcFailure
from tests.outside import loopback
from tests.outside.processes import READY, running

TOKEN = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
PREFLIGHT_FAILED = -32002
BLOCKHASH_BLOCKS = 150
RENT = 10_000_000
FEE = 5_000


class Cluster:
    """The methods of the node. A block per transaction; a blockhash stays valid until a test expires it."""

    def __init__(self) -> None:
        self._svm = LiteSVM()
        self._height = 1
        self._last_valid = self._height + BLOCKHASH_BLOCKS
        self._landed: dict[str, int] = {}
        self._whole: dict[str, VersionedTransaction] = {}
        self._mints: list[str] = []

    def table(self) -> Mapping[str, Method]:
        """Every method by its name; those with `dev_` are for tests."""
        return {
            "getHealth": lambda: "ok",
            "getVersion": lambda: {"solana-core": "litesvm"},
            "getBlockHeight": lambda *_: self._height,
            "getSlot": lambda *_: self._height,
            "getLatestBlockhash": self._blockhash,
            "isBlockhashValid": lambda one, *_: self._at(one == str(self._svm.latest_blockhash())),
            "getBalance": lambda who, *_: self._at(self._svm.get_balance(_key(who)) or 0),
            "getAccountInfo": self._account_info,
            "getTokenAccountBalance": self._token_balance,
            "getTokenAccountsByOwner": self._token_accounts,
            "getSignatureStatuses": self._statuses,
            "getTransaction": self._transaction,
            "getSignaturesForAddress": self._history,
            "getMinimumBalanceForRentExemption": lambda size, *_: self._svm.minimum_balance_for_rent_exemption(size),
            "sendTransaction": self._send,
            "simulateTransaction": self._simulate,
            "requestAirdrop": lambda who, lamports, *_: self._landing(self._svm.airdrop(_key(who), lamports)),
            "dev_createMint": self._create_mint,
            "dev_mintTo": self._mint_to,
            "dev_expireBlockhash": self._expire,
        }

    def _at(self, value: Any) -> dict[str, Any]:
        return {"context": {"slot": self._height}, "value": value}

    def _blockhash(self, *_: object) -> dict[str, Any]:
        return self._at({"blockhash": str(self._svm.latest_blockhash()), "lastValidBlockHeight": self._last_valid})

    def _send(self, encoded: str, options: Mapping[str, Any] | None = None) -> str:
        if (options or {}).get("encoding") != "base64":
            raise RpcFailure("only base64 is served here", INVALID_PARAMS)
        transaction = VersionedTransaction.from_bytes(base64.b64decode(encoded))
        if not (options or {}).get("skipPreflight"):
            _raise_if_failed(self._svm.simulate_transaction(transaction))
        signature = self._landing(self._svm.send_transaction(transaction))
        self._whole[signature] = transaction
        return signature

    def _simulate(self, encoded: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Tell whether it would succeed, also while a signature is still missing."""
        self._svm.with_sigverify(options.get("sigVerify", False))
        try:
            outcome = self._svm.simulate_transaction(VersionedTransaction.from_bytes(base64.b64decode(encoded)))
        finally:
            self._svm.with_sigverify(True)
        failed = isinstance(outcome, FailedTransactionMetadata)
        return self._at({"err": str(outcome.err()) if failed else None, "logs": outcome.meta().logs()})

    def _landing(self, outcome: Any) -> str:
        _raise_if_failed(outcome)
        self._height += 1
        signature = str(outcome.signature())
        self._landed[signature] = self._height
        return signature

    def _statuses(self, signatures: list[str], *_: object) -> dict[str, Any]:
        return self._at([self._status(str(Signature.from_string(one))) for one in signatures])

    def _status(self, signature: str) -> dict[str, Any] | None:
        slot = self._landed.get(signature)
        if slot is None:
            return None
        ok: dict[str, Any] = {"Ok": None}
        return {"slot": slot, "confirmations": None, "confirmationStatus": "finalized", "err": None, "status": ok}

    def _transaction(self, signature: str, options: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Its cost by its signatures, and its bytes."""
        slot = self._landed.get(signature)
        if slot is None:
            return None
        whole = self._whole.get(signature)
        signatures = 1 if whole is None else len(whole.signatures)
        found = {"slot": slot, "meta": {"err": None, "fee": FEE * signatures}}
        if whole is not None and (options or {}).get("encoding") == "base64":
            found["transaction"] = [base64.b64encode(bytes(whole)).decode(), "base64"]
        return found

    def _history(self, who: str, options: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Every transaction that names an address, newest first, with its memo as nodes write it."""
        named = [one for one, whole in self._whole.items() if _key(who) in whole.message.account_keys]
        entries = [
            {
                "signature": one,
                "slot": self._landed[one],
                "err": None,
                "memo": _memo(self._whole[one]),
                "blockTime": int(time.time()),
                "confirmationStatus": "finalized",
            }
            for one in reversed(named)
        ]
        return entries[: (options or {}).get("limit", 1000)]

    def _account_info(self, who: str, *_: object) -> dict[str, Any]:
        account = self._svm.get_account(_key(who))
        if account is None:
            return self._at(None)
        data = [base64.b64encode(account.data).decode(), "base64"]
        known = {"lamports": account.lamports, "owner": str(account.owner), "executable": account.executable}
        return self._at({**known, "data": data, "rentEpoch": 0, "space": len(account.data)})

    def _token_balance(self, who: str, *_: object) -> dict[str, Any]:
        account = self._svm.get_account(_key(who))
        if account is None or account.owner != TOKEN:
            raise RpcFailure("Invalid param: could not find account", INVALID_PARAMS)
        held = TokenAccount.from_bytes(account.data)
        decimals = Mint.from_bytes(self._svm.get_account(held.mint).data).decimals
        shown = f"{Decimal(held.amount).scaleb(-decimals):f}"
        return self._at({"amount": str(held.amount), "decimals": decimals, "uiAmountString": shown})

    def _token_accounts(self, owner: str, wanted: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
        """Those at the associated addresses of the mints that were made here: nobody opens others in a test."""
        assert options["encoding"] == "jsonParsed"
        if "mint" in wanted and wanted["mint"] not in self._mints:
            raise RpcFailure("Invalid param: could not find mint", INVALID_PARAMS)
        mints = [mint for mint in self._mints if wanted.get("mint", mint) == mint]
        if wanted.get("programId", str(TOKEN)) != str(TOKEN):
            mints = []
        accounts = [str(get_associated_token_address(_key(owner), _key(mint))) for mint in mints]
        return self._at(
            [
                {
                    "pubkey": account,
                    "account": {
                        "data": {
                            "program": "spl-token",
                            "parsed": {
                                "type": "account",
                                "info": {
                                    "mint": mint,
                                    "owner": owner,
                                    "tokenAmount": self._token_balance(account)["value"],
                                },
                            },
                        }
                    },
                }
                for mint, account in zip(mints, accounts, strict=True)
                if self._svm.get_account(_key(account))
            ]
        )

    def _create_mint(self, decimals: int = 6) -> str:
        mint = Keypair().pubkey()
        self._mints.append(str(mint))
        self._svm.set_account(mint, Account(RENT, bytes(Mint(None, 2**62, decimals, True, None)), TOKEN))
        return str(mint)

    def _mint_to(self, mint: str, owner: str, amount: int) -> str:
        address = get_associated_token_address(_key(owner), _key(mint))
        found = self._svm.get_account(address)
        held = TokenAccount.from_bytes(found.data).amount if found else 0
        state = TokenAccountState.Initialized
        account = TokenAccount(_key(mint), _key(owner), held + amount, None, state, None, 0, None)
        self._svm.set_account(address, Account(RENT, bytes(account), TOKEN))
        return str(address)

    def _expire(self) -> None:
        self._svm.expire_blockhash()
        self._height = self._last_valid + 1
        self._last_valid = self._height + BLOCKHASH_BLOCKS


class SolanaNode:
    """A running node and what only tests may do with it."""

    def __init__(self, url: str, http: httpx.Client) -> None:
        self.url = url
        self._http = http

    def rpc(self, method: str, *params: Any) -> Any:
        """Call a method; an error of the node is an error of the test."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._http.post(self.url, json=request).json()
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def fund(self, address: str, lamports: int = 10**9) -> None:
        """Give an address lamports."""
        self.rpc("requestAirdrop", address, lamports)

    def create_mint(self, decimals: int = 6) -> str:
        """Make a token; give its mint."""
        return self.rpc("dev_createMint", decimals)

    def mint_to(self, mint: str, owner: str, amount: int) -> str:
        """Give an owner tokens; give the address of the associated account that holds them."""
        return self.rpc("dev_mintTo", mint, owner, amount)

    def expire_blockhash(self) -> None:
        """Let enough blocks go by that no earlier blockhash is taken any more."""
        self.rpc("dev_expireBlockhash")


@contextmanager
def running_solana_node() -> Iterator[SolanaNode]:
    """Start a node on a free port."""
    command = [sys.executable, "-m", "tests.outside.solana_node"]
    with running(command) as address, loopback.client(timeout=20) as http:
        yield SolanaNode(f"http://{address}", http)


def _raise_if_failed(outcome: Any) -> None:
    if isinstance(outcome, FailedTransactionMetadata):
        logs = outcome.meta().logs()
        message = f"Transaction simulation failed: {' '.join([str(outcome.err()), *logs[-2:]])}"
        raise RpcFailure(message, PREFLIGHT_FAILED)


def _memo(whole: VersionedTransaction) -> str | None:
    keys = whole.message.account_keys
    memos = [bytes(one.data) for one in whole.message.instructions if keys[one.program_id_index] == MEMO]
    return "; ".join(f"[{len(one)}] {one.decode()}" for one in memos) or None


def _key(text: str) -> Pubkey:
    return Pubkey.from_string(text)


if __name__ == "__main__":
    with JsonRpcServer(0, Cluster().table()) as server:
        print(f"{READY}{server.address}", flush=True)
        server.serve_forever()
