"""The clients that are tried, the steps of each, and what must come of them: `docs/proxy.md` is this table."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.clients.apis.api import FILE, SIZE

SAME = [SIZE, hashlib.sha256(FILE).hexdigest()]
UPLOADED = hashlib.sha256(b"upload").digest() * (5 * 2**20 // 32)


class Step(msgspec.Struct, frozen=True):
    """Something that a client does, and what it must get for it."""

    done: str
    result: str
    got: Any


STEPS = {
    "call": Step("a plain call", "the answer", "one two three"),
    "stream": Step("a streamed answer", "its three pieces", ["one ", "two ", "three "]),
    "pages": Step("a list of three pages", "all three", ["1", "2", "3"]),
    "folder": Step("a name with a slash in it, `a%2Fb` on the wire", "the API reads `a%2Fb`", "a%2Fb"),
    "download": Step("20 MiB downloaded, the way the client does it", "the same bytes by SHA-256", SAME),
    "parts": Step("20 MiB downloaded in parts, by a route with `ranges`", "the same bytes by SHA-256", SAME),
    "no parts": Step("the same by a route without", "an error, and no file that looks complete", None),
    "upload": Step(
        "5 MiB uploaded", "the same bytes at the API", [len(UPLOADED), hashlib.sha256(UPLOADED).hexdigest()]
    ),
    "busy": Step("the API says 429 with `Retry-After: 7`", "the client's own error, and the 7", [429, "7"]),
}


class Run(msgspec.Struct, frozen=True):
    """A client in one of the proxy's forms: where its user puts the token, and the steps."""

    form: str
    place: str
    steps: tuple[str, ...]
    # What the program is told beside the address and the key.
    settings: dict[str, str] = {}
    # Steps that end otherwise, with a text that is in the client's error, and the words for the page.
    refused: dict[str, tuple[str, str]] = {}


class Client(msgspec.Struct, frozen=True):
    """A client: its name, the package that its version is of, the program that uses it, and the API behind it."""

    name: str
    package: tuple[str, str]
    program: str
    api: str
    runs: tuple[Run, ...]


GATEWAY, TUNNEL = "gateway", "`custody run`"
BEARER, BY_RUN = "`Authorization: Bearer`", "proxy address"


def runs() -> Iterator[tuple[Client, Run]]:
    """Every client in every form."""
    for client in CLIENTS:
        for run in client.runs:
            yield client, run


def quick_runs() -> Iterator[tuple[Client, Run]]:
    """Every place of the token once: each row of the gateway, and what has none, with the first step alone."""
    for client, run in runs():
        if run.form == GATEWAY or all(other.form != GATEWAY for other in client.runs):
            yield client, msgspec.structs.replace(run, steps=run.steps[:1])


def judge(step: str, got: Any, run: Run) -> tuple[bool, str]:
    """Say whether this is what must come of a step, and it in words."""
    failed = isinstance(got, dict) and "error" in got
    words = " ".join(f"{got['error']}: {got['said']}".split())[:100] if failed else STEPS[step].result
    if step in run.refused:
        return failed and run.refused[step][0] in words, words
    if step == "no parts":
        return failed, words
    return got == STEPS[step].got, words if failed or got == STEPS[step].got else f"{got}"[:200]


_MODEL = ("call", "stream", "pages", "download", "upload", "busy")
_PLAIN = ("call", "stream", "pages", "folder", "download", "parts", "no parts", "upload", "busy")
_FORGE = ("call", "pages", "folder", "download", "upload", "busy")
_STORE = ("call", "pages", "folder", "download", "parts", "no parts", "upload", "busy")
_HUB = ("call", "pages", "download", "upload", "busy")
_BUCKET = ("call", "pages", "download", "parts", "no parts", "upload", "busy")
_BLOBS = ("call", "pages", "parts", "no parts", "upload", "busy")
_PACKAGES = ("call", "download", "upload")
_MCP = ("call", "stream", "pages", "download", "upload")
_SOCKET = ("call", "download", "upload", "busy")
_IN_ADDRESS = "`http://agent:TOKEN@`"
# Programs that need no key where the proxy is in their environment are given none.
_NO_KEY = {"KEY": ""}
# The address that an upload goes to is a capability, and the client sends its key there no more.
_NO_UPLOAD = {"upload": ("401 None", "401 `bad_token`: it sends no key to the address of an upload")}


def _python(package: str) -> tuple[str, str]:
    return "python", package


def _node(package: str) -> tuple[str, str]:
    return "node", package


def _program(name: str) -> tuple[str, str]:
    return "system", name


def _both(place: str, steps: tuple[str, ...], **settings: str) -> tuple[Run, Run]:
    return Run(GATEWAY, place, steps, settings), Run(TUNNEL, BY_RUN, steps, settings)


CLIENTS = (
    Client("openai (Python)", _python("openai"), "with_openai.py", "openai", _both(BEARER, _MODEL)),
    Client(
        "openai, `AzureOpenAI`",
        _python("openai"),
        "with_azure_openai.py",
        "azure-openai",
        _both("`api-key`", ("call", "stream")),
    ),
    Client(
        "anthropic (Python)",
        _python("anthropic"),
        "with_anthropic.py",
        "anthropic",
        (
            *_both("`x-api-key` (`api_key`)", _MODEL, PLACE="api_key"),
            Run(GATEWAY, f"{BEARER} (`auth_token`)", ("call",), {"PLACE": "auth_token"}),
        ),
    ),
    Client(
        "google-genai (Python)",
        _python("google-genai"),
        "with_google_genai.py",
        "google",
        (Run(GATEWAY, "`x-goog-api-key`", _MODEL, refused=_NO_UPLOAD), Run(TUNNEL, BY_RUN, _MODEL)),
    ),
    Client("@octokit/rest", _node("@octokit/rest"), "with_octokit.mjs", "github", (Run(GATEWAY, BEARER, _FORGE),)),
    Client("PyGithub", _python("pygithub"), "with_pygithub.py", "github", _both("`Authorization: token`", _FORGE)),
    Client(
        "python-gitlab",
        _python("python-gitlab"),
        "with_python_gitlab.py",
        "gitlab",
        (
            *_both("`PRIVATE-TOKEN` (`private_token`)", _FORGE[:-1], PLACE="private_token"),
            Run(GATEWAY, f"{BEARER} (`oauth_token`)", ("call",), {"PLACE": "oauth_token"}),
            Run(GATEWAY, "`JOB-TOKEN` (`job_token`)", ("call",), {"PLACE": "job_token"}),
        ),
    ),
    Client("huggingface_hub", _python("huggingface-hub"), "with_huggingface_hub.py", "hub", _both(BEARER, _HUB)),
    Client("boto3", _python("boto3"), "with_boto3.py", "s3", _both("`aws_access_key_id`", _BUCKET)),
    Client(
        "azure-storage-blob, SAS",
        _python("azure-storage-blob"),
        "with_azure_blob.py",
        "azure-blob",
        (Run(TUNNEL, BY_RUN, _BLOBS),),
    ),
    Client("google-cloud-storage", _python("google-cloud-storage"), "with_gcs.py", "gcs", _both(BEARER, _STORE)),
    Client(
        "git",
        _program("git"),
        "with_git.py",
        "git",
        (Run(GATEWAY, _IN_ADDRESS, _PACKAGES), Run(TUNNEL, BY_RUN, _PACKAGES, _NO_KEY)),
    ),
    Client("npm", _node("npm"), "with_npm.py", "npm", _both("`_authToken`", _PACKAGES)),
    Client(
        "npm, no secret",
        _node("npm"),
        "with_npm.py",
        "npm-public",
        (
            Run(GATEWAY, "`_authToken`", ("call", "download")),
            Run(TUNNEL, BY_RUN, ("call", "download"), _NO_KEY),
        ),
    ),
    Client(
        "pip",
        _python("pip"),
        "with_pip.py",
        "pypi",
        (Run(GATEWAY, _IN_ADDRESS, ("download",)), Run(TUNNEL, BY_RUN, ("download",), _NO_KEY)),
    ),
    Client(
        "pip, no secret",
        _python("pip"),
        "with_pip.py",
        "pypi-public",
        (Run(GATEWAY, _IN_ADDRESS, ("download",)), Run(TUNNEL, BY_RUN, ("download",), _NO_KEY)),
    ),
    Client(
        "mcp (Python)",
        _python("mcp"),
        "with_mcp.py",
        "mcp",
        (Run(GATEWAY, BEARER, _MCP), Run(TUNNEL, BY_RUN, _MCP, _NO_KEY)),
    ),
    Client(
        "@modelcontextprotocol/sdk",
        _node("@modelcontextprotocol/sdk"),
        "with_mcp.mjs",
        "mcp",
        (Run(GATEWAY, BEARER, _MCP),),
    ),
    Client(
        "websockets",
        _python("websockets"),
        "with_websockets.py",
        "ws",
        (
            Run(GATEWAY, BEARER, _SOCKET),
            Run(GATEWAY, "subprotocol `openai-insecure-api-key.TOKEN`", ("call",), {"PLACE": "subprotocol"}),
            Run(TUNNEL, BY_RUN, _SOCKET, _NO_KEY),
        ),
    ),
    Client(
        "grpcio",
        _python("grpcio"),
        "with_grpcio.py",
        "grpc",
        (Run(TUNNEL, BY_RUN, ("call", "stream", "download", "upload")),),
    ),
    Client("requests", _python("requests"), "with_requests.py", "web", _both(BEARER, _PLAIN)),
    Client("httpx", _python("httpx"), "with_httpx.py", "web", _both(BEARER, _PLAIN)),
    Client("aiohttp", _python("aiohttp"), "with_aiohttp.py", "web", _both(BEARER, _PLAIN)),
    Client("curl", _program("curl"), "with_curl.py", "web", _both("`-u agent:TOKEN`", _PLAIN)),
)
