"""The words of the tenants' command: what each says of itself, and who knows them."""

import re
import shlex
from collections.abc import Iterator
from functools import partial

import click
import pytest

from ops import tenant_words
from tenant_command.root import WORDS, root
from tests.fixtures.tenant_commands import Desk


def commands(group: click.Group, *before: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, *before, name)
        elif found is not None:
            yield (*before, name), found


COMMANDS = dict(commands(root))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_says_what_it_does_and_shows_an_example_that_it_can_read(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    example = re.fullmatch(r"Example: (.+)", command.epilog or "")

    assert command.help
    assert example
    # Of a line with several programs, or one inside quotes, or a file behind: the part that is ours.
    [said] = re.findall(r"custody ([^|)>\"]+(?:\"[^\"]*\"[^|)>\"]*)*)", example[1])
    given = shlex.split(said)
    assert tuple(given[: len(words)]) == words
    parsed = command.make_context(" ".join(words), given[len(words) :], resilient_parsing=False)
    assert parsed.params


def test_every_command_prints_data_where_that_is_asked_for() -> None:
    without = {" ".join(words) for words, command in COMMANDS.items() if "as_json" not in _names(command)}

    assert without == {"completion"}


def _names(command: click.Command) -> set[str | None]:
    return {parameter.name for parameter in command.params}


def test_the_operators_command_knows_the_words_and_says_the_same_of_them() -> None:
    assert {*tenant_words.WORDS, "api"} == set(WORDS)
    for word, words in tenant_words.WORDS.items():
        command = root.get_command(click.Context(root), word)
        assert command is not None
        assert f"{words[0].upper()}{words[1:]}." == command.get_short_help_str(200)


def test_a_list_of_commands_shows_a_whole_sentence_for_each_at_80_columns() -> None:
    groups = [root, *(one for one in map(partial(root.get_command, click.Context(root)), WORDS) if one is not None)]

    for group in groups:
        if isinstance(group, click.Group):
            # Click leaves two columns free. The first line is how it is called.
            _, *lines = group.get_help(click.Context(group, terminal_width=78)).splitlines()
            assert [line for line in lines if line.endswith("...")] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(desk: Desk, shell: str) -> None:
    ended = desk.run("completion", shell)

    assert (ended.status, ended.complained) == (0, "")
    assert "_CUSTODY_COMPLETE" in ended.said


def test_a_word_is_completed(desk: Desk) -> None:
    ended = desk.run(environment={"_CUSTODY_COMPLETE": "bash_complete", "COMP_WORDS": "custody who", "COMP_CWORD": "1"})

    assert ended.said.split() == ["plain,whoami"]


def test_a_word_that_does_not_exist_is_refused_with_a_status_of_its_own(desk: Desk) -> None:
    ended, told = desk.run("agnets"), desk.run("agnets", "--json")

    assert ended.status == told.status == 2
    assert "No such command" in ended.complained
    assert (told.failure["code"], "No such command" in told.failure["error"]) == ("usage", True)
