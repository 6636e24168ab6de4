"""Completion of the words of this command by a shell."""

import click
from click.shell_completion import get_completion_class

from tenant_command.root import root

_VARIABLE = "_CUSTODY_COMPLETE"


@click.command("completion", epilog='Example: eval "$(custody completion bash)"')
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print what makes a shell complete these words.

    Run the script that is printed, or keep it where SHELL looks for such.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(found(root, {}, "custody", _VARIABLE).source())
