"""OpenAI's client."""

import openai
from steps import BASE, FILE, KEY, UPLOADED, WORDS, of_file, run

client = openai.OpenAI(base_url=f"{BASE}/v1", api_key=KEY, max_retries=0)
MESSAGES = [{"role": "user", "content": WORDS}]


def call() -> str | None:
    return client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content


def stream() -> list[str | None]:
    with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks:
        return [chunk.choices[0].delta.content for chunk in chunks]


def pages() -> list[str]:
    return [file.id for file in client.files.list(limit=1)]


def download() -> object:
    with client.files.with_streaming_response.content("file-1") as answer:
        answer.stream_to_file(FILE)
    return of_file()


def upload() -> object:
    size, digest = client.files.create(file=("f.txt", UPLOADED), purpose="assistants").filename.split()
    return [int(size), digest]


def busy() -> object:
    try:
        client.embeddings.create(model="m", input="x")
    except openai.RateLimitError as refused:
        return [refused.status_code, refused.response.headers["retry-after"]]


run({"call": call, "stream": stream, "pages": pages, "download": download, "upload": upload, "busy": busy})
