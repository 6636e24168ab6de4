"""The APIs of models: OpenAI's, its twin at Azure, Anthropic's and Google's."""

import hashlib

import msgspec

from tests.clients.apis.api import SIZE, Api, be_busy, in_header, receive, send_file
from tests.outside import upstream_answers
from tests.outside.upstream_server import Visit

WORDS = ("one ", "two ", "three ")

openai = Api("openai", in_header("authorization", "Bearer {}"))
azure = Api("azure-openai", in_header("api-key"))
anthropic = Api("anthropic", in_header("x-api-key"))
google = Api("google", in_header("x-goog-api-key"))


openai.on("POST", "/v1/chat/completions")(upstream_answers.chat)
openai.on("POST", "/v1/embeddings")(be_busy)
openai.on("GET", "/v1/files/file-1/content")(send_file)
azure.on("POST", r"/openai/deployments/m/chat/completions\?api-version=2024-10-21")(upstream_answers.chat)
anthropic.on("POST", "/v1/messages")(upstream_answers.messages)
anthropic.on("POST", "/v1/messages/count_tokens")(be_busy)
anthropic.on("GET", r"/v1/files/file-1/content(?:\?beta=true)?")(send_file)


@openai.on("GET", r"/v1/files(?:\?limit=1)?(?:[?&]after=(\d))?(?:&limit=1)?")
async def list_files(visit: Visit, after: str | None) -> None:
    """One of three pages; the next one is asked for by the last id."""
    number = int(after or 0) + 1
    file = _file(str(number))
    await visit.answer_json({"object": "list", "data": [file], "has_more": number < 3, "last_id": str(number)})


@openai.on("POST", "/v1/files")
async def upload_file(visit: Visit) -> None:
    """A form with the file in it: its size and digest come back as the name."""
    await visit.answer_json(_file("file-2") | {"filename": _of_form(await visit.body(), visit)})


@anthropic.on("GET", r"/v1/models\?(?:after_id=(\d)&)?limit=1(?:&after_id=(\d))?")
async def list_models(visit: Visit, after: str | None, later: str | None) -> None:
    """One of three pages."""
    number = int(after or later or 0) + 1
    model = {"id": str(number), "type": "model", "display_name": "M", "created_at": "2026-01-01T00:00:00Z"}
    said = {"data": [model], "has_more": number < 3, "first_id": str(number), "last_id": str(number)}
    await visit.answer_json(said)


@anthropic.on("POST", r"/v1/files(?:\?beta=true)?")
async def upload_to_anthropic(visit: Visit) -> None:
    """A form with the file in it."""
    named = _of_form(await visit.body(), visit)
    file = {"id": "file-2", "type": "file", "filename": named, "mime_type": "text/plain", "size_bytes": 1}
    await visit.answer_json(file | {"created_at": "2026-01-01T00:00:00Z", "downloadable": True})


def _answer_with(text: str, reason: str | None = None) -> dict[str, object]:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})]}


@google.on("POST", r"/v1(?:beta)?/models/m:generateContent")
async def generate(visit: Visit) -> None:
    """Words."""
    await visit.body()
    await visit.answer_json(_answer_with("".join(WORDS).strip(), "STOP"))


@google.on("POST", r"/v1(?:beta)?/models/m:streamGenerateContent\?alt=sse")
async def generate_in_pieces(visit: Visit) -> None:
    """The same as events."""
    await visit.body()
    await visit.head(content_type="text/event-stream", transfer_encoding="chunked")
    for word in WORDS:
        await visit.chunk(b"data: " + msgspec.json.encode(_answer_with(word)) + b"\r\n\r\n")
    await visit.chunk(b"")


google.on("POST", r"/v1(?:beta)?/models/busy:generateContent")(be_busy)


@google.on("GET", r"/v1(?:beta)?/models\?pageSize=1(?:&pageToken=(\d))?")
async def list_of_google(visit: Visit, page: str | None) -> None:
    """One of three pages."""
    number = int(page or 1)
    model = {"name": f"models/{number}", "displayName": str(number)}
    await visit.answer_json({"models": [model]} | ({"nextPageToken": str(number + 1)} if number < 3 else {}))


google.on("GET", r"/v1(?:beta)?/files/file-1:download\?alt=media")(send_file)


@google.on("POST", r"/upload/v1(?:beta)?/files")
async def begin_upload(visit: Visit) -> None:
    """Say where the bytes go."""
    await visit.body()
    where = f"https://{visit.header('host')}/upload/v1beta/files?upload_id=u1&upload_protocol=resumable"
    await visit.answer_json({}, x_goog_upload_url=where, x_goog_upload_status="active")


@google.on("POST", r"/upload/v1(?:beta)?/files\?upload_id=u1&upload_protocol=resumable")
async def end_upload(visit: Visit) -> None:
    """Take the bytes, all in one piece."""
    got = await receive(visit)
    status = "final" if visit.header("x-goog-upload-command") == "upload, finalize" else "active"
    file = {"name": "files/file-2", "displayName": f"{got[0]} {got[1]}", "uri": "https://x.test/files/file-2"}
    await visit.answer_json({"file": file}, x_goog_upload_status=status)


def _file(name: str) -> dict[str, object]:
    return {"id": name, "object": "file", "bytes": SIZE, "created_at": 1, "filename": "f", "purpose": "assistants"} | {
        "status": "processed"
    }


def _of_form(body: bytes, visit: Visit) -> str:
    """Size and digest of the one file in a form of parts."""
    boundary = (visit.header("content-type") or "").partition("boundary=")[2].strip('"').encode()
    parts = [part for part in body.split(b"--" + boundary) if b"filename=" in part[:500]]
    if len(parts) != 1:
        return f"{len(parts)} files"
    file = parts[0].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
    return f"{len(file)} {hashlib.sha256(file).hexdigest()}"
