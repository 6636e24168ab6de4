"""google-cloud-storage."""

from google.api_core.exceptions import TooManyRequests
from google.cloud import storage
from google.cloud.storage import transfer_manager
from google.oauth2.credentials import Credentials
from steps import BASE, FILE, KEY, PARTS, UPLOADED, of_file, run


def store(base: str) -> storage.Bucket:
    client = storage.Client(project="p", credentials=Credentials(token=KEY), client_options={"api_endpoint": base})
    return client.bucket("bkt")


bucket = store(BASE)


def download() -> object:
    bucket.blob("file").download_to_filename(str(FILE))
    return of_file()


def in_parts(base: str) -> object:
    blob = store(base).blob("file")
    blob.reload()
    parts = {"chunk_size": 8 * 2**20, "worker_type": transfer_manager.THREAD, "crc32c_checksum": False}
    transfer_manager.download_chunks_concurrently(blob, str(FILE), **parts)
    return of_file()


def folder() -> str:
    blob = bucket.blob("a/b")
    blob.reload()
    return blob.metadata["path"]


def upload() -> object:
    """Upload in parts of a MiB, each with its answer, and ask for what is there."""
    blob = bucket.blob("up")
    with blob.open("wb", chunk_size=2**20, checksum=None) as file:
        file.write(UPLOADED)
    blob.reload()
    return [blob.size, blob.metadata["sha256"]]


def busy() -> object:
    try:
        bucket.blob("busy").reload(retry=None)
    except TooManyRequests as refused:
        return [refused.code, refused.response.headers["retry-after"]]


def call() -> str:
    bucket.reload()
    return bucket.location


run(
    {
        "call": call,
        "pages": lambda: [blob.name for blob in bucket.list_blobs(page_size=1)],
        "folder": folder,
        "download": download,
        "parts": lambda: in_parts(PARTS),
        "no parts": lambda: in_parts(BASE),
        "upload": upload,
        "busy": busy,
    }
)
