"""The tables of accounts. Only the api writes them, and nothing is judged by them."""

from typing import Any

import msgspec
from tortoise import fields
from tortoise.models import Model


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _document(default: type) -> Any:
    return fields.JSONField(default=default, encoder=_encode, decoder=msgspec.json.decode)


class Account(Model):
    """An account; its wallets stand in rows of their own."""

    id = fields.CharField(64, primary_key=True)
    tenant_id = fields.CharField(64)
    display_name = fields.TextField(null=True)
    metadata = _document(dict)
    owner_user_ids = _document(list)
    additional_signer_ids = _document(list)
    signer_policy_ids = _document(list)
    created_at = fields.DatetimeField()
    updated_at = fields.DatetimeField()

    members: fields.ReverseRelation["Membership"]

    class Meta:
        """The table of its rows, and their order."""

        table = "accounts"
        ordering = ("-created_at", "id")


class Membership(Model):
    """An agent whose wallets belong to an account: those of one family, or all of them."""

    id = fields.UUIDField(primary_key=True)
    tenant_id = fields.CharField(64)
    account: fields.ForeignKeyRelation[Account] = fields.ForeignKeyField("models.Account", related_name="members")
    place = fields.SmallIntField()
    agent_id = fields.CharField(128)
    incarnation = fields.UUIDField()
    family = fields.TextField(null=True)
    name = fields.TextField(null=True)
    created_at = fields.DatetimeField()

    class Meta:
        """The table of its rows, and their order."""

        table = "account_wallets"
        ordering = ("place",)


class Aggregation(Model):
    """The wallets that an account had at some moment."""

    id = fields.CharField(64, primary_key=True)
    tenant_id = fields.CharField(64)
    account: fields.ForeignKeyRelation[Account] = fields.ForeignKeyField("models.Account", related_name="aggregations")
    account_id: str
    display_name = fields.TextField(null=True)
    metadata = _document(dict)
    wallet_ids = _document(list)
    chain_families = _document(list)
    created_at = fields.DatetimeField()
    updated_at = fields.DatetimeField()

    class Meta:
        """The table of its rows, and their order."""

        table = "account_aggregations"
        ordering = ("-created_at", "id")
