"""httpx, as scripts use it."""

import httpx
from steps import BASE, FILE, KEY, PARTS, UPLOADED, of_file, run

client = httpx.Client(headers={"Authorization": f"Bearer {KEY}"} if KEY else {}, timeout=60)
PART = 8 * 2**20


def get(url: str, **headers: str) -> httpx.Response:
    return client.get(url, headers=headers).raise_for_status()


def stream() -> list[str]:
    with client.stream("GET", f"{BASE}/stream") as answer:
        return [line.removeprefix("data: ") for line in answer.iter_lines() if line]


def pages() -> list[str]:
    found, url = [], f"{BASE}/items"
    while url:
        answer = get(url)
        found += [str(item["id"]) for item in answer.json()]
        url = answer.links.get("next", {}).get("url")
    return found


def download() -> object:
    with client.stream("GET", f"{BASE}/file") as answer, FILE.open("wb") as file:
        answer.raise_for_status()
        for piece in answer.iter_bytes():
            file.write(piece)
    return of_file()


def in_parts(base: str) -> object:
    size = int(client.head(f"{base}/file").headers["Content-Length"])
    with FILE.open("wb") as file:
        for first in range(0, size, PART):
            last = min(first + PART, size) - 1
            file.write(get(f"{base}/file", Range=f"bytes={first}-{last}").content)
    return of_file()


def busy() -> object:
    answer = client.get(f"{BASE}/busy")
    return [answer.status_code, answer.headers["Retry-After"]]


run(
    {
        "call": lambda: get(f"{BASE}/call").json()["said"],
        "stream": stream,
        "pages": pages,
        "folder": lambda: get(f"{BASE}/names/a%2Fb").json()["said"],
        "download": download,
        "parts": lambda: in_parts(PARTS),
        "no parts": lambda: in_parts(BASE),
        "upload": lambda: client.put(f"{BASE}/upload", content=UPLOADED).json(),
        "busy": busy,
    }
)
