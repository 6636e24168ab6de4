"""Imports of keys, and the wallets of people."""

import secrets
from typing import TYPE_CHECKING

from tests.acts.act import ABSENT, ADMINS, ANYBODY, DECIDERS, OF_AGENT, SESSION, Act, Journey
from tests.fixtures.callers import ADDRESS
from tests.fixtures.envelopes import seal
from tests.fixtures.people import Person, sign_in
from tests.routes.orders import note

if TYPE_CHECKING:
    from tests.table.world import World


def _alone_with_a_factor(world: "World") -> Person:
    """Somebody in their own tenant."""
    person = sign_in(world.service)
    person.enrol_totp()
    return person


def _user_wallet(world: "World") -> Journey:
    return Journey(_alone_with_a_factor(world), body={"walletIndex": 0})


def _user_wallets(world: "World") -> Journey:
    return Journey(_alone_with_a_factor(world))


def _with_a_wallet(world: "World") -> Person:
    person = _alone_with_a_factor(world)
    person.ok("POST", "/user/me/wallet", {})
    return person


def _user_signers(world: "World") -> Journey:
    return Journey(_with_a_wallet(world))


def _user_signer(world: "World") -> Journey:
    return Journey(_with_a_wallet(world), body={"subjectId": "my-bot"})


def _revoked_user_signer(world: "World") -> Journey:
    person = _with_a_wallet(world)
    return Journey(person, {"signer_id": person.ok("POST", "/user/me/wallet/signers", {"subjectId": "x"})["id"]})


def _begin_user_import(world: "World") -> Journey:
    return Journey(_with_a_wallet(world), body={"chain": "evm"})


def _finish_user_import(world: "World") -> Journey:
    person = _with_a_wallet(world)
    session = person.ok("POST", "/user/me/wallet/import/init", {"chain": "evm"})
    return Journey(person, body=seal(session, secrets.token_hex(32)))


def _begin_import(world: "World") -> Journey:
    return Journey(world.owner, {"agent": world.fresh_agent().id}, {"chain": "evm"})


def _finish_import(world: "World") -> Journey:
    agent = world.fresh_agent()
    session = world.owner.ok("POST", f"/vault/{agent.id}/import/init", {"chain": "evm"})
    return Journey(world.owner, {"agent": agent.id}, seal(session, secrets.token_hex(32)))


SEALED = {"importSessionId": ABSENT, "ephemeralPublicKey": "x", "iv": "x", "ciphertext": "x", "tag": "x"}

ACTS = (
    Act(
        "POST /vault/{agentId}/import/init",
        DECIDERS,
        ADMINS,
        "keyImport",
        command="BeginImport",
        nothing=OF_AGENT | {"chain": "evm"},
        journey=_begin_import,
    ),
    Act(
        "POST /vault/{agentId}/import/submit",
        DECIDERS,
        ADMINS,
        "keyImport",
        command="FinishImport",
        nothing=OF_AGENT | {"sealed": SEALED},
        journey=_finish_import,
    ),
    Act(
        "POST /user/me/wallet",
        SESSION,
        ANYBODY,
        "userWallets",
        command="CreateUserWallet",
        nothing={"wallet_index": 0},
        journey=_user_wallet,
    ),
    Act("GET /user/me/wallets", SESSION, ANYBODY, "userWallets", journey=_user_wallets),
    Act(
        "POST /user/me/wallet/sign",
        SESSION,
        ANYBODY,
        "userWallets",
        command="SignUserOrder",
        nothing={
            "wallet_index": 0,
            "tx_id": ABSENT,
            "question": {"kind": "evm", "request": {"to": ADDRESS, "value": "1"}},
        },
        journey=lambda world: Journey(_with_a_wallet(world), body={"to": ADDRESS, "value": "1", "broadcast": False}),
    ),
    Act(
        "POST /user/me/wallet/sign-typed-data",
        SESSION,
        ANYBODY,
        "userWallets",
        command="SignUserOrder",
        journey=lambda world: Journey(_with_a_wallet(world), body=note()),
    ),
    Act(
        "POST /user/me/wallet/sign-message",
        SESSION,
        ANYBODY,
        "userWallets",
        command="SignUserOrder",
        journey=lambda world: Journey(_with_a_wallet(world), body={"chainFamily": "evm", "message": "hello"}),
    ),
    Act(
        "POST /user/me/wallet/import/init",
        SESSION,
        ADMINS,
        "keyImport",
        command="BeginUserImport",
        nothing={"chain": "evm", "wallet_index": 0},
        journey=_begin_user_import,
    ),
    Act(
        "POST /user/me/wallet/import/submit",
        SESSION,
        ADMINS,
        "keyImport",
        command="FinishUserImport",
        nothing={"sealed": SEALED},
        journey=_finish_user_import,
    ),
    Act("GET /user/me/wallet/signers", SESSION, ADMINS, "signers", journey=_user_signers),
    Act(
        "POST /user/me/wallet/signers",
        SESSION,
        ADMINS,
        "signers",
        command="CreateSigner",
        nothing=OF_AGENT | {"signer": {"signerType": "service", "subjectType": "external", "subjectId": "x"}},
        journey=_user_signer,
    ),
    Act(
        "DELETE /user/me/wallet/signers/{signerId}",
        SESSION,
        ADMINS,
        "signers",
        command="RevokeSigner",
        nothing=OF_AGENT | {"signer": ABSENT},
        journey=_revoked_user_signer,
    ),
)
