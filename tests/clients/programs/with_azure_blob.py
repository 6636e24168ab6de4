"""azure-storage-blob with a shared access signature, which is a parameter of each request."""

from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContainerClient
from steps import BASE, FILE, KEY, PARTS, UPLOADED, of_file, run


def box(base: str) -> ContainerClient:
    signature = AzureSasCredential(f"sv=2026-01-01&sig={KEY}")
    return ContainerClient(base, "box", credential=signature, retry_total=0)


client = box(BASE)


def in_parts(base: str) -> object:
    with FILE.open("wb") as file:
        box(base).download_blob("file").readinto(file)
    return of_file()


def upload() -> object:
    size, digest = client.get_blob_client("up").upload_blob(UPLOADED, overwrite=True)["etag"].strip('"').split()
    return [int(size), digest]


def busy() -> object:
    try:
        box(PARTS).download_blob("busy").readall()
    except HttpResponseError as refused:
        return [refused.status_code, refused.response.headers["retry-after"]]


run(
    {
        "call": lambda: box(PARTS).download_blob("words").readall().decode(),
        "pages": lambda: [blob.name for blob in client.list_blobs(results_per_page=1)],
        "parts": lambda: in_parts(PARTS),
        "no parts": lambda: in_parts(BASE),
        "upload": upload,
        "busy": busy,
    }
)
