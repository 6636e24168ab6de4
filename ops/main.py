"""The `custody` command and its sub-commands."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from custody.kit.environment import BadSetting
from custody.version import VERSION, commit
from ops import (
    database_addresses,
    import_key_words,
    people_words,
    places,
    recovery_words,
    sign_request_words,
    tenant_words,
    unlock,
)
from ops.checkout import MCP, MCP_PYTHON
from ops.settings import MODULES, PROCESSES, Settings, load

_RUN = "custody run --agent ID [--expires-in 24h] [--ca FILE] -- PROGRAM [ARGUMENT ...]"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="custody", description="Lets agents spend money and call APIs without a key.")
    top.add_argument("--version", action="version", version=f"custody {VERSION}, commit {commit()}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start everything here and keep it running until Ctrl-C")
    up.add_argument("--no-demo", action="store_true", help="skip the demo on the first start")
    for process in PROCESSES:
        more = "; with words behind it, send a request as a person or tenant" if process == "api" else ""
        commands.add_parser(process, help=f"run only the {process}{more}")
    run = commands.add_parser("run", usage=_RUN, help="start a program that calls APIs through the proxy, as an agent")
    run.add_argument("--agent", required=True, metavar="ID", help="the agent that the program acts as")
    run.add_argument("--expires-in", default="24h", metavar="TIME", help="lifetime of its token (24h)")
    run.add_argument("--ca", type=Path, metavar="FILE", help="the proxy's CA certificate, if not in the default place")
    commands.add_parser("migrate", help="migrate the database and write the database URL of each process")
    people_words.declare(commands)
    _declare_platform_keys(commands)
    _declare_audit(commands)
    _declare_receipt(commands)
    recovery_words.declare(commands)
    sign_request_words.declare(commands, argparse.RawDescriptionHelpFormatter)
    import_key_words.declare(commands)
    unlock.declare(commands)
    commands.add_parser("demo", help="run a demo against the local service")
    commands.add_parser("console", help="open the approvals console", add_help=False)
    tenant_words.declare(commands)
    commands.add_parser("mcp", help="give a model an agent's tools (Model Context Protocol)", add_help=False)
    doctor = commands.add_parser("doctor", help="check this installation and say how to fix what is wrong")
    doctor.add_argument("--holders", action="store_true", help="ask each holder of a sealed master key file, too")
    contract = commands.add_parser("openapi", help="print the contract")
    contract.set_defaults(form=())
    for form, path in (("plain", "/openapi-plain.json"), ("webhooks", "/webhooks.json")):
        contract.add_argument(f"--{form}", action="store_const", dest="form", const=(path,), help=f"print {path}")
    quorum = commands.add_parser("break-quorum", help="disable an agent's approval quorums, from 24 hours on")
    quorum.add_argument("--tenant", required=True)
    quorum.add_argument("--agent", required=True)
    quorum.add_argument("--cancel", action="store_true", help="cancel it")
    return top


def _declare_platform_keys(commands: Any) -> None:
    top = commands.add_parser("platform-keys", help="create, list and revoke platform keys with scopes")
    acts = top.add_subparsers(dest="act", required=True, metavar="create|list|revoke")
    create = acts.add_parser("create", help="create a key, shown only once")
    create.add_argument("--name", required=True, help="a name, to recognise it")
    scope = "a permission, for example platform:tenant:read; may be repeated"
    create.add_argument("--scope", required=True, action="append", help=scope)
    acts.add_parser("list", help="list the keys without their values")
    revoke = acts.add_parser("revoke", help="revoke a key at once")
    revoke.add_argument("id", help="the id that `list` shows")


def _declare_receipt(commands: Any) -> None:
    top = commands.add_parser("receipt", help="check a receipt offline")
    verify = top.add_subparsers(dest="act", required=True, metavar="verify").add_parser(
        "verify", help="print what a receipt proves, and what not"
    )
    verify.add_argument("file", type=Path, metavar="FILE", help="the receipt, as returned by the service")
    keys = "the service's public keys, from /.well-known/jwks.json"
    verify.add_argument("--jwks", type=Path, required=True, metavar="FILE", help=keys)
    policies = "policies, as returned by the service: check that they are the ones that judged"
    verify.add_argument("--policies", type=Path, metavar="FILE", help=policies)


def _declare_audit(commands: Any) -> None:
    top = commands.add_parser("audit", help="verify an export of the audit log, or repair a stopped log")
    acts = top.add_subparsers(dest="act", required=True, metavar="verify|mend")
    mend = acts.add_parser("mend", help="rebuild the queue of a stopped log, so that it is sealed again")
    mend.add_argument("logs", nargs="*", metavar="LOG", help="a tenant, or platform; default: every stopped log")
    verify = acts.add_parser("verify", help="check an NDJSON export, offline")
    verify.add_argument("file", type=Path, metavar="FILE", help="the export")
    keys = "the public keys from /.well-known/jwks.json; keep a copy that only you can write"
    verify.add_argument("--jwks", type=Path, metavar="FILE", help=keys)
    earlier = "an earlier checkpoint: check that the log extends it"
    verify.add_argument("--checkpoint", type=Path, metavar="OLD", help=earlier)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["console"]:
        return _become_a_client("console", "textual", given[1:])
    if given[:1] == ["mcp"]:
        return _mcp(given[1:])
    if tenant_words.are_for_tenants(given, os.environ):
        return _become_a_client("tenant_command", "click", given)
    ours, program = _split(given)
    chosen = parser().parse_args(ours)
    try:
        if chosen.command == "sign-request":
            return _sign_request(chosen)
        if chosen.command == "import-key":
            return _import_key(chosen)
        settings = load(os.environ)
        return _run(chosen, settings, program)
    except BadSetting as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Anyone who read has read enough (`custody doctor | head`); what Python still holds goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except PermissionError as problem:
        whose = (
            f"{problem.filename} is not yours: run this as the user who started Custody"
            if problem.filename
            else problem
        )
        print(f"custody: {whose}", file=sys.stderr)
        return 1
    except (OSError, RuntimeError) as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own words, and for `custody run` the program's: nothing behind the first `--` is ever read as ours."""
    if arguments[:1] != ["run"]:
        return arguments, []
    at = arguments.index("--") if "--" in arguments else len(arguments)
    ours, program = arguments[:at], arguments[at + 1 :]
    if not program and not {"-h", "--help"}.intersection(ours):
        parser().exit(2, f"custody run: put `--` and the program after the options:\n  {_RUN}\n")
    return ours, program


def _run(chosen: argparse.Namespace, settings: Settings, program: Sequence[str]) -> int:  # noqa: PLR0912 - a line for each command
    if chosen.command in PROCESSES:
        # As under the supervisor: the assertions of the proxy's library are dear.
        os.environ |= {"PYTHONOPTIMIZE": "1"} if chosen.command == "proxy" else {}
        os.environ |= database_addresses.of_process(chosen.command, os.environ)
        return _become(MODULES[chosen.command])
    if chosen.command == "openapi":
        return _become("api", "--openapi", *chosen.form)
    if chosen.command == "run":
        from ops import run  # noqa: PLC0415

        return run.run(settings, chosen.agent, chosen.expires_in, chosen.ca, program)
    # Each imports what it needs: `custody openapi` must not pay for Postgres, nor `up` for the demo.
    if chosen.command == "up":
        from ops import up  # noqa: PLC0415

        return asyncio.run(up.run(settings, demo=not chosen.no_demo))
    if chosen.command == "receipt":
        from ops import receipt  # noqa: PLC0415

        return receipt.run(chosen)
    if chosen.command == "doctor":
        from ops import doctor  # noqa: PLC0415

        return asyncio.run(doctor.run(settings, ask_holders=chosen.holders))
    if chosen.command == "platform-keys":
        from ops import platform_keys  # noqa: PLC0415

        return asyncio.run(platform_keys.run(settings, chosen))
    if chosen.command in ("tenants", "users", "invitations"):
        from ops import people  # noqa: PLC0415

        return people.run(settings, chosen)
    if chosen.command == "audit":
        return _audit(chosen, settings)
    if chosen.command == "break-quorum":
        from ops import break_quorum  # noqa: PLC0415

        return asyncio.run(break_quorum.run(settings, chosen))
    if chosen.command == "keys" and chosen.act in ("lock", "holders", "unlock-file"):
        from ops import locking  # noqa: PLC0415

        return locking.run(settings, chosen)
    if chosen.command == "keys":
        from ops import keys  # noqa: PLC0415

        return asyncio.run(keys.run(settings, chosen))
    if chosen.command == "unlock":
        return unlock.run(chosen, settings)
    if chosen.command == "backup":
        from ops import backup  # noqa: PLC0415

        return asyncio.run(backup.run(settings, chosen.folder, with_sealed_key=chosen.with_sealed_key))
    if chosen.command == "restore":
        from ops import restore  # noqa: PLC0415

        return asyncio.run(restore.run(settings, chosen))
    if chosen.command == "demo":
        from ops import demo  # noqa: PLC0415

        return asyncio.run(demo.run(settings))
    return asyncio.run(_migrate(settings))


def _audit(chosen: argparse.Namespace, settings: Settings) -> int:
    if chosen.act == "mend":
        from ops import audit_mend  # noqa: PLC0415

        return asyncio.run(audit_mend.run(settings, chosen.logs))
    from ops import audit  # noqa: PLC0415

    return audit.run(chosen)


def _sign_request(chosen: argparse.Namespace) -> int:
    """Needs no installation of the service either, and so none of its settings."""
    from ops import sign_request  # noqa: PLC0415

    return sign_request.run(chosen)


def _import_key(chosen: argparse.Namespace) -> int:
    from ops import import_key  # noqa: PLC0415 - as above

    return import_key.run(chosen)


def _become_a_client(module: str, library: str, arguments: list[str]) -> int:
    """Its words are its own, and it needs no installation of the service: only an address."""
    if find_spec(module) is None or find_spec(library) is None:
        # An image of the service has the processes, not what people run on their own machines.
        print(
            "custody: this command is not part of this installation; install it with pip install 'custody[console]', "
            "or run it from a checkout",
            file=sys.stderr,
        )
        return 2
    return _become(module, *arguments)


def _mcp(arguments: list[str]) -> int:
    """A client as well, with packages of its own: in this interpreter, or in the one that `make mcp` made."""
    if find_spec("mcp") is not None and find_spec("mcp_server") is not None:
        return _become("mcp_server", *arguments)
    if MCP_PYTHON.exists():
        sys.stdout.flush()
        os.execv(MCP_PYTHON, [str(MCP_PYTHON), "-P", "-m", "mcp_server", *arguments])  # noqa: S606 - no shell, fixed words
    print(f"custody mcp: its packages are not installed; {MCP}", file=sys.stderr)
    return 2


def _become(module: str, *arguments: str) -> int:
    """Turn into another process; the command never imports one (processes share only `custody`)."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])  # noqa: S606 - no shell, fixed words


async def _migrate(settings: Settings) -> int:
    from ops.migrate import migrate  # noqa: PLC0415
    from ops.owners import owner_url  # noqa: PLC0415

    home = places.open_home(settings.home, settings.uid_base)
    async with owner_url(settings, home) as url:
        applied = await migrate(url, home, given=settings.given_database_urls, limits=settings.connection_limits)
    print(f"Applied {', '.join(applied)}." if applied else "The database is up to date.")
    return 0
