"""Everything that looks like a credential of Custody is blanked, wherever it stands in a line of the log."""

import re
from pathlib import Path

from custody.kit import tokens
from custody.kit.logs import redact
from tests.fixtures.each import each

PROJECT = Path(__file__).parents[3]
# Where credentials are made: by the shared function, or with a prefix of one's own.
MADE = re.compile(r'new_api_key\("([a-z]+)"\)|_PREFIX = "([a-z]+)_"')
# Shown to nobody but the program that makes it.
OF_THE_DEMO = {"demo"}


def kinds() -> set[str]:
    sources = [
        file.read_text()
        for folder in ("custody", "signer", "identity", "api", "scheduler")
        for file in (PROJECT / folder).rglob("*.py")
    ]
    return {found[1] or found[2] for text in sources for found in MADE.finditer(text)} - OF_THE_DEMO


def test_every_kind_of_credential_is_known() -> None:
    assert kinds() == {"ck", "pk", "as", "rsk", "rt", "dc", "svs", "whsec"}


@each("kind", ["ck", "pk", "as", "rsk", "rt", "dc", "svs", "whsec", "sk"])
@each(
    "around", ["{}", "refused: {}.", "Bearer {}", '{{"token":"{}"}}', "first line\\n{}\\nlast", "?key={}&x=1", "my_{}"]
)
def test_a_credential_is_blanked(kind: str, around: str) -> None:
    secret = tokens.new_api_key(kind)

    line = redact(around.format(secret))

    assert secret not in line
    assert secret[-20:] not in line
    assert line.replace("[redacted]", secret) == around.format(secret)


@each("text", ["task_of_the_scheduler_now", "custody.agents.passport_control_unit", "rt_short"])
def test_a_word_that_only_ends_like_one_stays(text: str) -> None:
    assert redact(text) == text
