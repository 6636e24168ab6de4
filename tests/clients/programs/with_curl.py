"""curl, from a script."""

import json
import re
import subprocess
from pathlib import Path

from steps import BASE, FILE, KEY, PARTS, UPLOADED, of_file, run


class Failed(Exception):
    """curl ended with a status that is not 0."""


def curl(*arguments: str) -> str:
    token = ["-u", f"agent:{KEY}"] if KEY else []
    done = subprocess.run(["curl", "-sS", *token, *arguments], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Failed(f"{done.returncode}: {done.stderr}")
    return done.stdout


def pages() -> list[str]:
    found, url = [], f"{BASE}/items"
    while url:
        head, _, body = curl("--fail", "-i", url).replace("\r", "").rpartition("\n\n")
        found += [str(item["id"]) for item in json.loads(body)]
        following = re.search(r'^link: <([^>]+)>; rel="next"', head, re.MULTILINE | re.IGNORECASE)
        url = following[1] if following else ""
    return found


def download() -> object:
    curl("--fail", "-o", str(FILE), f"{BASE}/file")
    return of_file()


def resume(base: str) -> object:
    """Go on with a third of the file, as after a broken connection."""
    curl("--fail", "-o", str(FILE), f"{base}/file")
    whole = FILE.read_bytes()
    FILE.write_bytes(whole[: len(whole) // 3])
    curl("--fail", "-C", "-", "-o", str(FILE), f"{base}/file")
    return of_file()


def upload() -> object:
    Path("upload").write_bytes(UPLOADED)
    return json.loads(curl("--fail", "-T", "upload", f"{BASE}/upload"))


def busy() -> object:
    head = curl("-i", f"{BASE}/busy")
    status = re.findall(r"^HTTP/\S+ (\d+)", head, re.MULTILINE)[-1]
    return [int(status), re.findall(r"^retry-after: (\d+)", head, re.MULTILINE | re.IGNORECASE)[0]]


def stream() -> list[str]:
    return [line.removeprefix("data: ") for line in curl("--fail", "-N", f"{BASE}/stream").splitlines() if line]


run(
    {
        "call": lambda: json.loads(curl("--fail", f"{BASE}/call"))["said"],
        "stream": stream,
        "pages": pages,
        "folder": lambda: json.loads(curl("--fail", f"{BASE}/names/a%2Fb"))["said"],
        "download": download,
        "parts": lambda: resume(PARTS),
        "no parts": lambda: resume(BASE),
        "upload": upload,
        "busy": busy,
    }
)
