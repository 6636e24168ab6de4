"""The APIs of GitHub and GitLab, as much as their SDKs use of them here."""

import base64

import msgspec

from tests.clients.apis.api import FILE, Api, be_busy, digest_of, in_header, receive, send_file
from tests.outside.upstream_server import Visit

github = Api("github", in_header("authorization", "Bearer {}"))
gitlab = Api("gitlab", in_header("private-token"))
_REPO = "/repos/o/r"
_PROJECT = "/api/v4/projects/g%2Fp"


@github.on("GET", "/user")
async def user(visit: Visit) -> None:
    """The user that the credential is of."""
    await visit.answer_json({"login": "u", "name": "one two three", "id": 1})


@github.on("GET", rf"{_REPO}/issues(?:\?page=(\d))?")
async def issues(visit: Visit, page: str | None) -> None:
    """One of three pages, linked as GitHub does it."""
    at = int(page or 1)
    link = f'<https://{visit.header("host")}{_REPO}/issues?page={at + 1}>; rel="next"'
    await visit.answer_json([{"id": at, "number": at, "title": str(at)}], **({"link": link} if at < 3 else {}))


@github.on("GET", f"{_REPO}/contents/a%2Fb")
@github.on("GET", rf"{_REPO}/commits/a%2Fb\?page=1")
async def of_name(visit: Visit) -> None:
    """A file in a folder, or the commit of a branch, named by what stands in the path."""
    last = visit.path.rpartition("/")[2]
    await visit.answer_json({"name": last, "sha": last})


@github.on("GET", f"{_REPO}/git/blobs/sha-1")
async def blob(visit: Visit) -> None:
    """The file of 20 MiB within JSON."""
    await visit.answer_json({"sha": "sha-1", "encoding": "base64", "content": base64.b64encode(FILE).decode()})


@github.on("PUT", f"{_REPO}/contents/up.bin")
async def put_file(visit: Visit) -> None:
    """A file within JSON; its size and digest come back as its name."""
    asked = msgspec.json.decode(await visit.body())
    size, digest = digest_of(base64.b64decode(asked["content"]))
    await visit.answer_json({"content": {"name": f"{size} {digest}"}, "commit": {"sha": "1"}})


github.on("GET", f"{_REPO}/releases/assets/1")(send_file)
github.on("GET", f"{_REPO}/labels/busy")(be_busy)


@gitlab.on("GET", "/api/v4/version")
async def version(visit: Visit) -> None:
    """The version."""
    await visit.answer_json({"version": "one two three", "revision": "1"})


@gitlab.on("GET", r"/api/v4/projects(?:\?page=(\d))?")
async def projects(visit: Visit, page: str | None) -> None:
    """One of three pages, linked as GitLab does it."""
    at = int(page or 1)
    link = f'<https://{visit.header("host")}/api/v4/projects?page={at + 1}>; rel="next"'
    await visit.answer_json([{"id": at}], **({"link": link} if at < 3 else {}))


@gitlab.on("GET", f"{_PROJECT}/repository/branches/a%2Fb")
async def branch(visit: Visit) -> None:
    """A branch whose name is what stands in the path."""
    await visit.answer_json({"name": visit.target.rpartition("/")[2]})


gitlab.on("GET", f"{_PROJECT}/packages/generic/n/1/f")(send_file)


@gitlab.on("PUT", f"{_PROJECT}/packages/generic/n/1/up")
async def put_package(visit: Visit) -> None:
    """A package; what came is said in the message."""
    size, digest = await receive(visit)
    await visit.answer_json({"message": f"{size} {digest}"})
