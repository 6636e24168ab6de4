"""Anthropic's client."""

import os

import anthropic
from steps import BASE, FILE, KEY, UPLOADED, WORDS, of_file, run

client = anthropic.Anthropic(base_url=BASE, max_retries=0, **{os.environ["PLACE"]: KEY})
MESSAGES = [{"role": "user", "content": WORDS}]


def call() -> str:
    return client.messages.create(model="m", max_tokens=10, messages=MESSAGES).content[0].text


def stream() -> list[str]:
    with client.messages.stream(model="m", max_tokens=10, messages=MESSAGES) as pieces:
        return list(pieces.text_stream)


def pages() -> list[str]:
    return [model.id for model in client.models.list(limit=1)]


def download() -> object:
    client.beta.files.download("file-1").write_to_file(FILE)
    return of_file()


def upload() -> object:
    size, digest = client.beta.files.upload(file=("f.txt", UPLOADED, "text/plain")).filename.split()
    return [int(size), digest]


def busy() -> object:
    try:
        client.messages.count_tokens(model="m", messages=MESSAGES)
    except anthropic.RateLimitError as refused:
        return [refused.status_code, refused.response.headers["retry-after"]]


run({"call": call, "stream": stream, "pages": pages, "download": download, "upload": upload, "busy": busy})
