"""Composite types are passed to SQL functions by position: the Python side has the same fields in the same order."""

import asyncpg
import pytest

from custody.database.texts import read
from custody.kit.act import Act, Credential
from identity.administration.tenants import NewTenantRow
from signer.agents import NewAgentRow, NewWalletRow
from signer.approver_keys import KeyRow
from signer.breakers import BreakerRow
from signer.intents.steps import NewRow as NewIntentRow
from signer.intents.steps import StepRow
from signer.ledger import RECORD_FIELDS, CallRow, GuardRow, NonceRow, SetChargeRow, VoteRow
from signer.policies import RuleRow
from signer.policy_sets import SetRow

# The other way round: functions give it, and Python names its columns.
GIVEN = {"platform_person"}
PASSED = {
    "act": Act._fields,
    "credential": Credential._fields,
    "intent_row": NewIntentRow._fields,
    "intent_step": StepRow._fields,
    "new_agent": NewAgentRow._fields,
    "new_tenant": NewTenantRow._fields,
    "new_wallet": NewWalletRow._fields,
    "rule": RuleRow._fields,
    "vote": VoteRow._fields,
    "approver_key": KeyRow._fields,
    "nonce_request": NonceRow._fields,
    "sign_guard": GuardRow._fields,
    "sign_record": RECORD_FIELDS,
    "call_charge": CallRow._fields,
    "breaker": BreakerRow._fields,
    "set_charge": SetChargeRow._fields,
    "policy_set": SetRow._fields,
}


@pytest.mark.parametrize("name", sorted(text.name for text in read() if text.kind == "type" and text.name not in GIVEN))
async def test_a_composite_has_the_fields_of_its_type_in_their_order(owner: asyncpg.Connection, name: str) -> None:
    rows = await owner.fetch(
        "SELECT a.attname FROM pg_attribute a JOIN pg_type t ON t.typrelid = a.attrelid"
        " WHERE t.typname = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        name,
    )

    assert PASSED[name] == tuple(row["attname"] for row in rows)


async def test_no_function_takes_more_than_ten_arguments(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND pronargs > 10"
    )

    assert [row["proname"] for row in rows] == []
