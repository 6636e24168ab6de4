"""docs/call-openai.md: every block of it, with the tests' upstream in OpenAI's place."""

from pathlib import Path

import pytest

from tests.fixtures.pages import Reader, only, programs_of
from tests.fixtures.proxied import Keyless

PAGE = "docs/call-openai.md"
ASKED = "Say hello."


@pytest.fixture
def reader(tmp_path: Path, keyless: Keyless) -> Reader:
    """Somebody with the tenant's key, the key of the API, and the address of the proxy."""
    known = {"key": keyless.tenant.key, "OPENAI_API_KEY": keyless.value, "SERVICE_PROXY_URL": keyless.proxy.url}
    return Reader(tmp_path, keyless.proxied, **known)


def here(program: str, keyless: Keyless) -> str:
    """Put the upstream of this test where the page says OpenAI."""
    return program.replace("api.openai.com", f"localhost:{keyless.upstream.port}").replace("/openai/v1", "/up/v1")


def test_every_program_of_the_page_is_run_here() -> None:
    assert [language for language, _ in programs_of(PAGE)] == ["sh", "sh", "python"]


def test_an_agent_calls_the_api_with_its_token_and_the_tenants_key_arrives(reader: Reader, keyless: Keyless) -> None:
    found = [(language, here(program, keyless)) for language, program in programs_of(PAGE)]
    keep, explain = only(found, "sh")
    [program] = only(found, "python")

    reader.paste(keep)
    explained = reader.paste(explain)
    token = (reader.folder / "writer.token").read_text().strip()
    ended = reader.python(program, SERVICE_AGENT_TOKEN=token)
    stranger = reader.python(program, SERVICE_AGENT_TOKEN=keyless.token)

    assert explained == '"matched"\n'
    assert ended.stdout == f"{ASKED}\n", ended
    assert keyless.upstream.requests()[0].all("authorization") == [f"Bearer {keyless.value}"]
    # The route names the one agent; another one of the tenant is told so, in a sentence.
    assert "Error code: 403 - No enabled credential route covers this host" in stranger.stderr
    assert len(keyless.upstream.requests()) == 1
