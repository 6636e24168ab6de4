"""huggingface_hub: its address is in HF_ENDPOINT."""

import os

from steps import BASE, KEY, UPLOADED, run, size_and_digest

os.environ["HF_ENDPOINT"] = BASE
import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError

hub = huggingface_hub.HfApi(endpoint=BASE, token=KEY)


def download() -> object:
    with open(huggingface_hub.hf_hub_download("o/r", "file.bin", endpoint=BASE, token=KEY), "rb") as file:
        return size_and_digest(file.read())


def upload() -> object:
    size, digest = hub.upload_file(path_or_fileobj=UPLOADED, path_in_repo="up", repo_id="o/r").oid.split()
    return [int(size), digest]


def busy() -> object:
    try:
        hub.model_info("busy/busy")
    except HfHubHTTPError as refused:
        return [refused.response.status_code, refused.response.headers["retry-after"]]


run(
    {
        "call": lambda: hub.whoami()["name"],
        "pages": lambda: [model.id for model in hub.list_models()],
        "download": download,
        "upload": upload,
        "busy": busy,
    }
)
