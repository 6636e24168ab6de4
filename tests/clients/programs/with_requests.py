"""requests, as scripts use it."""

import requests
from steps import BASE, FILE, KEY, PARTS, UPLOADED, of_file, run

session = requests.Session()
if KEY:
    session.headers["Authorization"] = f"Bearer {KEY}"
PART = 8 * 2**20


def get(url: str, **more: object) -> requests.Response:
    answer = session.get(url, timeout=60, **more)
    answer.raise_for_status()
    return answer


def stream() -> list[str]:
    with get(f"{BASE}/stream", stream=True) as answer:
        return [line.removeprefix("data: ") for line in answer.iter_lines(decode_unicode=True) if line]


def pages() -> list[str]:
    found, url = [], f"{BASE}/items"
    while url:
        answer = get(url)
        found += [str(item["id"]) for item in answer.json()]
        url = answer.links.get("next", {}).get("url")
    return found


def download() -> object:
    with get(f"{BASE}/file", stream=True) as answer, FILE.open("wb") as file:
        for piece in answer.iter_content(2**20):
            file.write(piece)
    return of_file()


def in_parts(base: str) -> object:
    size = int(session.head(f"{base}/file", timeout=60).headers["Content-Length"])
    with FILE.open("wb") as file:
        for first in range(0, size, PART):
            last = min(first + PART, size) - 1
            file.write(get(f"{base}/file", headers={"Range": f"bytes={first}-{last}"}).content)
    return of_file()


def busy() -> object:
    answer = session.get(f"{BASE}/busy", timeout=60)
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
        "upload": lambda: session.put(f"{BASE}/upload", data=UPLOADED, timeout=60).json(),
        "busy": busy,
    }
)
