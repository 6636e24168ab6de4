"""Google's client for Gemini."""

import io

from google import genai
from google.genai import errors
from steps import BASE, FILE, KEY, UPLOADED, WORDS, of_file, run

client = genai.Client(api_key=KEY, http_options={"base_url": BASE})


def call() -> str | None:
    return client.models.generate_content(model="m", contents=WORDS).text


def stream() -> list[str | None]:
    return [piece.text for piece in client.models.generate_content_stream(model="m", contents=WORDS)]


def pages() -> list[str | None]:
    return [model.display_name for model in client.models.list(config={"page_size": 1})]


def download() -> object:
    FILE.write_bytes(client.files.download(file="files/file-1"))
    return of_file()


def upload() -> object:
    size, digest = client.files.upload(
        file=io.BytesIO(UPLOADED), config={"mime_type": "text/plain"}
    ).display_name.split()
    return [int(size), digest]


def busy() -> object:
    try:
        client.models.generate_content(model="busy", contents=WORDS)
    except errors.ClientError as refused:
        return [refused.code, refused.response.headers["retry-after"]]


run({"call": call, "stream": stream, "pages": pages, "download": download, "upload": upload, "busy": busy})
