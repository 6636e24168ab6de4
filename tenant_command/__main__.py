"""Run one command, and end with a status that says how it went."""

import asyncio
import os
import sys
from typing import Final

import click
import msgspec

from console.entry.settings import BadSetting
from console.wire.failures import Answered, Away, Failure, SignedOut, bug_sentence
from tenant_command.call import SignInFirst
from tenant_command.root import root
from words.texts.plain import plain

REFUSED: Final = 1
USAGE: Final = 2
SIGN_IN: Final = 3
AWAY: Final = 4
STOPPED: Final = 130


def main(arguments: list[str]) -> int:
    """Run a command; gives the exit status, and a failure's sentence on standard error."""
    try:
        ended = root(arguments, prog_name="custody", standalone_mode=False)
    except click.ClickException as problem:
        if _wants_json(arguments):
            return _fail(problem.format_message(), "usage", problem.exit_code, arguments)
        problem.show()
        return problem.exit_code
    except BadSetting as problem:
        return _fail(str(problem), "bad_setting", USAGE, arguments)
    except SignedOut as failure:
        sentence = f"{failure.sentence} Sign in with `custody login`."
        return _fail(sentence, failure.code, SIGN_IN, arguments)
    except Answered as failure:
        return _fail(failure.sentence, failure.code, REFUSED, arguments)
    except SignInFirst as failure:
        return _fail(failure.sentence, "sign_in_first", SIGN_IN, arguments)
    except Away as failure:
        return _fail(failure.sentence, "away", AWAY, arguments)
    except Failure as failure:
        return _fail(failure.sentence, "failed", REFUSED, arguments)
    except BrokenPipeError:
        # Anyone who read has read enough; what Python still holds goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return REFUSED
    except (KeyboardInterrupt, click.Abort, asyncio.CancelledError):
        return STOPPED
    except Exception as problem:  # A fault of this program; its words could hold a value that is nobody's to see.
        return _fail(bug_sentence(problem, "this command"), "bug", REFUSED, arguments)
    # A command that ends with a status of its own raises click's Exit, and click gives that status back.
    return ended if isinstance(ended, int) else 0


def _wants_json(arguments: list[str]) -> bool:
    return "--json" in arguments


def _fail(sentence: str, code: str, status: int, arguments: list[str]) -> int:
    if _wants_json(arguments):
        told = {"ok": False, "error": sentence, "code": code}
        print(msgspec.json.encode(told).decode(), file=sys.stderr)
    else:
        print(f"custody: {plain(sentence)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
