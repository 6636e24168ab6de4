"""The page of messages says what the declarations say, and each table of a worker has a handler for each command."""

import inspect
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import pytest

from custody.protocol.command import Command, commands_of
from custody.worker.handlers import Handler, on, table_of
from custody.worker.proven import ProvenAgent, ProvenAppClient, ProvenPlatform, ProvenSession, ProvenTenant
from identity.table import HANDLERS as PEOPLE
from signer import status
from signer.table import HANDLERS
from tests.fixtures.commands import COMMANDS
from tests.fixtures.each import each
from tests.structure.protocol_page import PAGE, SECTIONS, commands_in, rewrite

ALL: tuple[Handler[Any], ...] = (*HANDLERS, *PEOPLE)
# What each kind of proof proves.
PROVEN = {
    "agent": ProvenAgent,
    "tenant_key": ProvenTenant,
    "app_client": ProvenAppClient,
    "session": ProvenSession,
    "platform_key": ProvenPlatform,
}


def test_the_page_says_what_is_declared() -> None:
    assert PAGE.read_text() == rewrite(PAGE.read_text(), SECTIONS), "run `make protocol`"


def test_the_page_has_every_command() -> None:
    listed = [command for module in SECTIONS.values() for command in commands_in(module)]

    assert sorted(command.__name__ for command in listed) == sorted(COMMANDS)


def test_every_message_has_a_declaration() -> None:
    assert {command.__name__ for command in Command.__subclasses__()} == set(COMMANDS)


def test_a_worker_does_not_start_without_a_handler_or_with_two() -> None:
    signers = len(commands_of("signer"))

    assert len(table_of(HANDLERS, "signer")) == signers
    with pytest.raises(TypeError, match="SignOrder"):
        table_of([one for one in HANDLERS if one.command.__name__ != "SignOrder"], "signer")
    with pytest.raises(TypeError, match="Status is carried out twice"):
        table_of([*HANDLERS, on(COMMANDS["Status"][0], status.status)], "signer")
    with pytest.raises(TypeError, match="NewNonce"):
        table_of([*HANDLERS, next(one for one in PEOPLE if one.command.__name__ == "NewNonce")], "signer")
    assert len(table_of(PEOPLE, "identity")) == len(commands_of("identity"))


@each("handler", ALL, ids=lambda handler: handler.command.__name__)
def test_a_handler_takes_the_command_that_it_stands_for_and_every_caller_it_is_declared_for(
    handler: Handler[Any],
) -> None:
    _, message, ask = inspect.signature(handler.carry_out).parameters.values()
    declared = COMMANDS[handler.command.__name__][1]

    assert handler.command in parts(message.annotation)
    callers = {caller for part in parts(ask.annotation) for caller in parts(part.__args__[0])}
    for proof in declared.proofs:
        assert any(issubclass(PROVEN[proof], caller) for caller in callers), (proof, callers)
    if not declared.proofs:
        assert callers == {NoneType}


def parts(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself."""
    return get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
