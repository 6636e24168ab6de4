"""`custody apply` and `custody export`: the whole tenant as a file."""

import asyncio
from pathlib import Path
from typing import Any, Final

import click

from console.wire.failures import Failure
from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.files import STANDARD_INPUT
from tenant_command.options import FILE, YES
from tenant_command.tenant_file.asking import Asking, find_who
from tenant_command.tenant_file.exporting import tenant_as_data
from tenant_command.tenant_file.plan import plan_of
from tenant_command.tenant_file.reading import read_tenant_file
from tenant_command.tenant_file.secret_references import value_of
from tenant_command.tenant_file.sending import Sending
from tenant_command.tenant_file.shape import TENANT
from tenant_command.tenant_file.steps import Plan, Who
from tenant_command.tenant_file.words import missing_values, name_of, plan_as_data, plan_in_words
from tenant_command.yaml_text import yaml_text
from words.texts.fields import pluralize

_HEADING: Final = (
    "A tenant, as `custody export` has it and `custody apply -f` takes it.",
    "Values of secrets are in no file: each `value` says where apply finds one that is not stored yet.",
)


@command("apply", example="custody apply -f tenant.yaml --dry-run")
@FILE
@click.option("--dry-run", is_flag=True, help="Print the plan, and change nothing.")
@YES
@click.option("--prune", is_flag=True, help="Delete what the sections of the file do not name; agents stay.")
async def apply(call: Call, *, file: str, dry_run: bool, yes: bool, prune: bool) -> None:
    """Plan what a tenant's file changes, ask, do it.

    Only what the file names is touched. A second apply changes nothing, and one that was cut off goes on.
    """
    call.out.doing(f"Reading {file}")
    wanted = await asyncio.to_thread(read_tenant_file, file)
    folder = Path.cwd() if file == STANDARD_INPUT else Path(file).parent
    call.out.doing("Reading what the service has")
    who, _ = await find_who(call)
    asking, plan = await _plan(call, who, wanted, prune=prune)
    data = plan_as_data(plan, who, folder)
    if not call.out.as_json:
        call.out.show(None, *plan_in_words(plan, who, folder))
    if plan.problems:
        _tell(call, data, applied=False)
        raise Failure(f"Nothing was sent: {'; '.join(plan.problems)}.")
    if dry_run or not plan.steps:
        _tell(call, data, applied=False)
        return
    if missing := missing_values(plan, folder):
        _tell(call, data, applied=False)
        raise Failure(f"Nothing was sent: {'; '.join(missing)}.")
    values = {name: value_of(name, reference, folder) for name, reference in plan.values.items()}
    call.confirm(f"Do {pluralize(len(plan.steps), 'step', 'steps')} in tenant {who.tenant}?", assumed=yes)
    sending = Sending(call, who, asking, values)
    await sending.carry_out(plan)
    left = await _unlike(call, who, wanted)
    _tell(call, data | {"unlike": left}, applied=True)
    for note in sending.notes:
        call.out.warn(note)
    if left:
        raise Failure(
            f"All was sent, and these still differ from the file: {'; '.join(left)}. "
            "The service keeps another spelling: write it as `custody export` does."
        )
    if not call.out.as_json:
        call.out.show(None, f"Done: {pluralize(len(plan.steps), 'step', 'steps')}.")


@command("export", example="custody export > tenant.yaml")
async def export(call: Call) -> None:
    """Print the whole tenant as a file.

    `custody apply -f` takes it. Values of secrets are not in it: each is a reference, to be filled.
    """
    call.out.doing("Reading what the service has")
    who, _ = await find_who(call)
    asking = Asking(call, who)
    await asking.read_all([section for section in TENANT.fields if section != "version"], None)
    data, lacks = tenant_as_data(asking.state, is_person=who.is_person)
    for sentence in lacks:
        call.out.warn(sentence)
    if call.out.as_json:
        call.out.data(data)
        return
    # What a terminal would obey is written as its number in it.
    call.out.show(None, *yaml_text(data, *_HEADING).splitlines())


async def _plan(call: Call, who: Who, wanted: dict[str, Any], *, prune: bool) -> tuple[Asking, Plan]:
    asking = Asking(call, who)
    agents = [agent["id"] for agent in wanted.get("agents") or () if agent.get("policies") is not None]
    await asking.read_all([section for section in wanted if section != "version"], agents)
    return asking, plan_of(wanted, asking.state, who, prune=prune)


async def _unlike(call: Call, who: Who, wanted: dict[str, Any]) -> list[str]:
    """Read everything once more, and name what is not as the file says."""
    call.out.doing("Comparing what the service has now")
    _, plan = await _plan(call, who, wanted, prune=False)
    return [name_of(step) for step in plan.steps]


def _tell(call: Call, data: dict[str, Any], *, applied: bool) -> None:
    if call.out.as_json:
        call.out.data(data | {"applied": applied})
