"""An API without an SDK: answers in pieces, pages by `Link`, files, 429."""

from tests.clients.apis.api import Api, be_busy, in_header, receive, send_file
from tests.outside.upstream_server import Visit

WORDS = ("one ", "two ", "three ")
web = Api("web", in_header("authorization", "Bearer {}"))


@web.on("GET", "/call")
async def call(visit: Visit) -> None:
    """Words."""
    await visit.answer_json({"said": "".join(WORDS).strip()})


@web.on("GET", "/stream")
async def stream(visit: Visit) -> None:
    """The same as events."""
    await visit.head(content_type="text/event-stream", transfer_encoding="chunked")
    for word in WORDS:
        await visit.chunk(f"data: {word}\n\n".encode())
    await visit.chunk(b"")


@web.on("GET", r"/items(?:\?page=(\d))?")
async def items(visit: Visit, page: str | None) -> None:
    """One of three pages."""
    at = int(page or 1)
    link = f'<https://{visit.header("host")}/items?page={at + 1}>; rel="next"'
    await visit.answer_json([{"id": at}], **({"link": link} if at < 3 else {}))


@web.on("GET", "/names/a%2Fb")
async def folder(visit: Visit) -> None:
    """Say the target as it came."""
    await visit.answer_json({"said": visit.target.rpartition("/")[2]})


@web.on("PUT", "/upload")
@web.on("POST", "/upload")
async def upload(visit: Visit) -> None:
    """Say what came."""
    await visit.answer_json(await receive(visit))


web.on("GET", "/file")(send_file)
web.on("HEAD", "/file")(send_file)
web.on("GET", "/busy")(be_busy)
