"""Registries of packages, with a credential and without, and a host of git repositories."""

import asyncio
import base64
import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

from tests.clients.apis.api import FILE, Api, in_header
from tests.outside.upstream_server import Visit


def in_basic(user: str) -> Callable[[Visit], str | None]:
    """The credential as the password of a user."""
    read = in_header("authorization", "Basic {}")

    def password(visit: Visit) -> str | None:
        name, _, value = base64.b64decode(read(visit) or "").decode().partition(":")
        return value if name == user else None

    return password


npm, npm_public = Api("npm", in_header("authorization", "Bearer {}")), Api("npm-public")
pypi, pypi_public = Api("pypi", in_basic("u")), Api("pypi-public")
git = Api("git", in_basic("x-access-token"))


@cache
def tarball() -> bytes:
    """A package of npm with the file of 20 MiB."""
    said = msgspec.json.encode({"name": "@acme/tools", "version": "1.0.0", "description": "one two three"})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for name, content in (("package/package.json", said), ("package/file", FILE)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@cache
def wheel() -> bytes:
    """A package of Python with the file of 20 MiB."""
    about = "tools-1.0.dist-info"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tools/__init__.py", "")
        archive.writestr("tools/file", FILE)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tools\nVersion: 1.0\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return packed.getvalue()


def _of_npm(api: Api) -> None:
    published: dict[str, bytes] = {}

    @api.on("GET", "/@acme%2ftools")
    async def package(visit: Visit) -> None:
        """The package, with the absolute addresses of its files."""
        versions = {}
        for version, content in {"1.0.0": tarball(), **published}.items():
            where = f"https://{visit.header('host')}/@acme/tools/-/tools-{version}.tgz"
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
            said = {"name": "@acme/tools", "version": version, "description": "one two three"}
            versions[version] = {**said, "dist": {"tarball": where, "integrity": integrity}}
        await visit.answer_json({"name": "@acme/tools", "dist-tags": {"latest": "1.0.0"}, "versions": versions})

    @api.on("GET", r"/@acme/tools/-/tools-([\d.]+)\.tgz")
    async def file(visit: Visit, version: str) -> None:
        content = tarball() if version == "1.0.0" else published[version]
        await visit.answer(content, content_type="application/octet-stream")

    @api.on("PUT", "/@acme%2ftools")
    async def publish(visit: Visit) -> None:
        asked = msgspec.json.decode(await visit.body())
        for version in asked["versions"]:
            (attached,) = asked["_attachments"].values()
            published[version] = base64.b64decode(attached["data"])
        await visit.answer_json({"ok": True, "success": True})


def _of_pypi(api: Api) -> None:
    @api.on("GET", "/simple/tools/")
    async def index(visit: Visit) -> None:
        """The package's page, with a relative address."""
        name, digest = "tools-1.0-py3-none-any.whl", hashlib.sha256(wheel()).hexdigest()
        link = f'<!DOCTYPE html><a href="../../packages/{name}#sha256={digest}">{name}</a>'
        await visit.answer(link.encode(), content_type="text/html")

    @api.on("GET", "/packages/tools-1.0-py3-none-any.whl")
    async def file(visit: Visit) -> None:
        await visit.answer(wheel(), content_type="application/octet-stream", accept_ranges="bytes")


for one in (npm, npm_public):
    _of_npm(one)
for one in (pypi, pypi_public):
    _of_pypi(one)


@cache
def repositories() -> tempfile.TemporaryDirectory[str]:
    """A folder with one repository, in which three branches have the file of 20 MiB; it goes with the process."""
    folder = tempfile.TemporaryDirectory(prefix="cg-")
    bare = Path(folder.name) / "o" / "r.git"
    who = "t <t@example.com> 1700000000 +0000"
    commit = f"commit refs/heads/one\ncommitter {who}\ndata 5\nfirst\nM 100644 inline file\ndata {len(FILE)}\n"
    told = commit.encode() + FILE + b"\nreset refs/heads/two\nfrom refs/heads/one\n"
    told += b"\nreset refs/heads/three\nfrom refs/heads/one\n"
    for command, given in (
        (["git", "init", "-q", "--bare", "-b", "one", str(bare)], b""),
        (["git", "-C", str(bare), "config", "http.receivepack", "true"], b""),
        (["git", "-C", str(bare), "config", "core.bigFileThreshold", "1m"], b""),
        (["git", "-C", str(bare), "fast-import", "--quiet"], told),
    ):
        subprocess.run(command, input=given, check=True, capture_output=True)
    return folder


@git.on("GET", r"/o/r\.git(/info/refs)\?(service=git-(?:upload|receive)-pack)")
@git.on("POST", r"/o/r\.git(/git-(?:upload|receive)-pack)()")
async def smart_http(visit: Visit, path: str, query: str) -> None:
    """The server of git itself, which any web server starts so."""
    body = await visit.body()
    variables = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": repositories().name,
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_PROTOCOL": visit.header("git-protocol") or "",
        "HTTP_CONTENT_ENCODING": visit.header("content-encoding") or "",
        "REQUEST_METHOD": visit.method,
        "PATH_INFO": f"/o/r.git{path}",
        "QUERY_STRING": query,
        "CONTENT_TYPE": visit.header("content-type") or "",
        "CONTENT_LENGTH": str(len(body)),
        "REMOTE_USER": "u",
    }
    process = await asyncio.create_subprocess_exec(
        *("git", "http-backend"), env=variables, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate(body)
    head, _, rest = said.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
    status = int(headers.pop("Status", "200").split()[0])
    await visit.answer(rest, status, **{name.replace("-", "_"): value for name, value in headers.items()})
