"""Stores of objects: S3 with its signatures, Azure's blobs, Google's, and the Hub of models."""

import base64
import re
from xml.sax.saxutils import escape

import msgspec

from tests.clients.apis.api import SIZE, Answer, Api, be_busy, digest_of, in_header, receive, refuse, send_file
from tests.outside import store
from tests.outside.upstream_server import Visit

s3 = Api("s3")
azure = Api("azure-blob", lambda visit: visit.query.get("sig"))
gcs = Api("gcs", in_header("authorization", "Bearer {}"))
hub = Api("hub", in_header("authorization", "Bearer {}"))
_XML = '<?xml version="1.0" encoding="UTF-8"?>'


async def words(visit: Visit) -> None:
    """A small object, of which Azure's client asks for a part that is larger."""
    said, part = b"one two three", {}
    if visit.header("x-ms-range"):
        part = {"content_range": f"bytes 0-{len(said) - 1}/{len(said)}"}
    await visit.answer(said, 206 if part else 200, content_type="text/plain", etag='"words"', **part)


def _with_signature(answer: Answer) -> Answer:
    """Answer only what is signed, and hand in the body without its frames."""

    async def judge_first(visit: Visit, *groups: str | None) -> None:
        sent = await visit.body()
        try:
            store.judge(visit, sent)
            body = store.whole(visit, sent)
        except store.Unacceptable as problem:
            visit.note("stray", api="s3", why=str(problem), target=visit.target)
            await refuse(visit, 403, "SignatureDoesNotMatch")
            return
        await (answer(visit, body) if visit.method == "PUT" else answer(visit, *groups))

    return judge_first


s3.on("GET", "/bkt/words")(_with_signature(words))
s3.on("GET", "/bkt/file")(_with_signature(send_file))
s3.on("HEAD", "/bkt/file")(_with_signature(send_file))
s3.on("GET", "/bkt/busy")(_with_signature(be_busy))


@s3.on("GET", r"/bkt\?(?=.*list-type=2)(?:.*continuation-token=(\d))?.*")
@_with_signature
async def list_objects(visit: Visit, page: str | None) -> None:
    """One of three pages."""
    at = int(page or 1)
    more = f"<NextContinuationToken>{at + 1}</NextContinuationToken>" if at < 3 else ""
    said = f"<IsTruncated>{str(at < 3).lower()}</IsTruncated>{more}<Contents><Key>{at}</Key><Size>1</Size></Contents>"
    body = f"{_XML}<ListBucketResult><Name>bkt</Name>{said}</ListBucketResult>"
    await visit.answer(body.encode(), content_type="application/xml")


@s3.on("PUT", "/bkt/up")
@_with_signature
async def put_object(visit: Visit, body: bytes) -> None:
    """An object; what came is said in the tag."""
    size, digest = digest_of(body)
    await visit.answer(b"", etag=f'"{size} {digest}"')


_SAS = r"(?:\?|.*&)sv=2026-01-01&sig=[^&]+"
azure.on("GET", rf"/box/words{_SAS}")(words)
azure.on("GET", rf"/box/file{_SAS}")(send_file)
azure.on("GET", rf"/box/busy{_SAS}")(be_busy)


@azure.on("GET", r"/box\?restype=container&comp=list(.*)")
async def list_blobs(visit: Visit, query: str) -> None:
    """One of three pages."""
    marker = re.search(r"marker=(\d)", query)
    at = int(marker[1] if marker else 1)
    following = str(at + 1) if at < 3 else ""
    blob = f"<Blob><Name>{at}</Name><Properties><BlobType>BlockBlob</BlobType></Properties></Blob>"
    body = (
        f'{_XML}<EnumerationResults ServiceEndpoint="{escape(str(visit.header("host")))}" ContainerName="box">'
        f"<Blobs>{blob}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"
    )
    await visit.answer(body.encode(), content_type="application/xml")


@azure.on("PUT", rf"/box/up{_SAS}")
async def put_blob(visit: Visit) -> None:
    """A blob; what came is said in the tag."""
    size, digest = await receive(visit)
    await visit.answer(b"", 201, etag=f'"{size} {digest}"', x_ms_version="2026-01-01")


_BUCKET = "/storage/v1/b/bkt"


@gcs.on("GET", rf"{_BUCKET}\?.*")
async def bucket(visit: Visit) -> None:
    """The bucket."""
    await visit.answer_json({"name": "bkt", "location": "one two three"})


@gcs.on("GET", rf"{_BUCKET}/o\?(.*)")
async def list_of_bucket(visit: Visit, query: str) -> None:
    """One of three pages."""
    token = re.search(r"pageToken=(\d)", query)
    at = int(token[1] if token else 1)
    following = {"nextPageToken": str(at + 1)} if at < 3 else {}
    await visit.answer_json({"items": [{"name": str(at), "bucket": "bkt"}], **following})


@gcs.on("GET", rf"{_BUCKET}/o/(file|a%2Fb)\?.*")
async def metadata(visit: Visit, name: str) -> None:
    """Metadata of an object, whose description is the path's last part as it came."""
    await visit.answer_json({"name": "x", "bucket": "bkt", "size": str(SIZE), "metadata": {"path": name}})


gcs.on("GET", rf"/download{_BUCKET}/o/file\?alt=media")(send_file)
gcs.on("GET", rf"{_BUCKET}/o/busy\?.*")(be_busy)


@gcs.on("POST", rf"/upload{_BUCKET}/o\?uploadType=resumable(.*)")
async def begin_upload(visit: Visit, _query: str) -> None:
    """Say where the bytes go."""
    await visit.body()
    where = f"https://{visit.header('host')}/upload{_BUCKET}/o?uploadType=resumable&upload_id=u1"
    await visit.answer(b"", 200, location=where)


_uploads: list[bytes] = []


@gcs.on("PUT", rf"/upload{_BUCKET}/o\?uploadType=resumable&upload_id=u1")
async def go_on_with_upload(visit: Visit) -> None:
    """Take a part; 308 until it is the last."""
    said = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", visit.header("content-range") or "")
    first, _, size = said.groups() if said else ("0", "0", "*")
    if first == "0":
        _uploads.clear()
    _uploads.append(await visit.body())
    so_far = sum(map(len, _uploads))
    if size == "*" or so_far < int(size):
        await visit.answer(b"", 308, range=f"bytes=0-{so_far - 1}")
        return
    await visit.answer_json({"name": "up", "bucket": "bkt"})


@gcs.on("GET", rf"{_BUCKET}/o/up\?.*")
async def metadata_of_upload(visit: Visit) -> None:
    """Metadata of what came in parts."""
    size, digest = digest_of(b"".join(_uploads))
    await visit.answer_json({"name": "up", "bucket": "bkt", "size": str(size), "metadata": {"sha256": digest}})


@hub.on("GET", "/api/whoami-v2")
async def whoami(visit: Visit) -> None:
    """The user that the credential is of."""
    await visit.answer_json({"name": "one two three", "type": "user"})


@hub.on("GET", "/api/agent-harnesses")
async def harnesses(visit: Visit) -> None:
    """Something that the client asks by itself, and does without."""
    await refuse(visit, 404, "There is no such list.")


@hub.on("GET", r"/api/models(?:\?(?!cursor).*|\?cursor=(\d))?")
async def list_models(visit: Visit, page: str | None) -> None:
    """One of three pages."""
    at = int(page or 1)
    link = f'<https://{visit.header("host")}/api/models?cursor={at + 1}>; rel="next"'
    await visit.answer_json([{"id": str(at), "modelId": str(at)}], **({"link": link} if at < 3 else {}))


@hub.on("HEAD", "/o/r/resolve/main/file.bin")
@hub.on("GET", "/o/r/resolve/main/file.bin")
@hub.on("GET", f"/o/r/resolve/{'1' * 40}/file.bin")
async def resolve(visit: Visit) -> None:
    """The file, and which commit it is of."""
    await send_file(visit, x_repo_commit="1" * 40)


hub.on("GET", r"/api/models/busy/busy(?:/revision/main)?(?:\?.*)?")(be_busy)


@hub.on("POST", "/api/models/o/r/preupload/main")
async def preupload(visit: Visit) -> None:
    """Say that the file may come within the commit."""
    asked = msgspec.json.decode(await visit.body())
    files = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in asked["files"]]
    await visit.answer_json({"files": files})


@hub.on("POST", r"/api/models/o/r/commit/main(?:\?.*)?")
async def commit(visit: Visit) -> None:
    """Take a commit; what came is said as its id."""
    lines = [msgspec.json.decode(line) for line in (await visit.body()).splitlines() if line]
    (file,) = [line["value"] for line in lines if line["key"] == "file"]
    size, digest = digest_of(base64.b64decode(file["content"]))
    await visit.answer_json(
        {"success": True, "commitOid": f"{size} {digest}", "commitUrl": "https://huggingface.co/o/r/commit/1"}
    )
