"""A secret that an upstream writes with the libraries that upstreams are written with comes back as stars."""

import json
import shutil
import subprocess

import pytest

from proxy_addon.mask import Masker, mask_text, needles
from tests.judges import npm

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

SECRETS = [
    "ab+cd/ef==",
    "sk-proj-4f9/Qz+88~end",
    'pass word&<tag>\'s "quoted" `tick`',
    "p\u00e4ss=w\u00f6rd/\u20ac+1",
    "a;b,c:d?e#f@g!h$i(j)k*l[m]n{o}p|q^r\\s%t",
]


@pytest.fixture(scope="module")
def encodings() -> list[dict[str, str]]:
    """For each secret what every encoder makes of it."""
    npm.install()
    node = shutil.which("node")
    assert node
    lines = "\n".join(map(json.dumps, SECRETS))
    done = subprocess.run(
        [node, "encoders.mjs"], cwd=npm.JUDGES, input=lines, capture_output=True, text=True, check=True, timeout=60
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_output_of_javascript_encoders_is_masked(encodings: list[dict[str, str]]) -> None:
    shown = []
    for secret, texts in zip(SECRETS, encodings, strict=True):
        for encoder, text in texts.items():
            raw = text.encode()
            masker = Masker(needles(secret))
            streamed = b"".join([*(masker.feed(raw[at : at + 1]) for at in range(len(raw))), masker.end()])
            whole = mask_text(raw, needles(secret))
            # The last characters of base64 are decided by what follows too.
            if whole.rstrip(b"=")[: len(raw) - 4].strip(b"*") or streamed != whole:
                shown.append((encoder, text, whole, streamed))

    assert len(encodings[0]) >= 17
    assert shown == []
