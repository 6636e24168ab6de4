"""The page at `/llms.txt` as a skill: a folder that agents of many makers load when its description fits.

`scripts/sdk` writes it to `sdk/skills/custody/SKILL.md`; the words are the page's.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE, WRITTEN = HERE.parent / "api/pages/llms/page.txt", HERE / "skills/custody/SKILL.md"
# What decides whether an agent reads the rest.
DESCRIPTION = (
    "Pay, sign and call paid or keyed APIs through Custody, a wallet and keyring whose keys the agent never holds. Use "
    "it when the user wants something paid, signed, transferred or bought, when a server answers HTTP 402, or when an "
    "API needs a key, and SERVICE_URL and SERVICE_AGENT_TOKEN are set."
)


def text_of(page: str) -> str:
    """Return the skill of a page: its words below what an agent chooses skills by."""
    return f"---\nname: {WRITTEN.parent.name}\ndescription: {DESCRIPTION}\n---\n\n{page}"


if __name__ == "__main__":
    sys.stdout.write(text_of(PAGE.read_text()))
