"""The form of every refusal of the proxy."""

import httpx
import msgspec

from tests.fixtures.wire import Answer


def refusal(answer: httpx.Response | Answer | None) -> tuple[int, str]:
    """The status and the word for programs, of an answer that must have our envelope and nothing else."""
    assert answer is not None, "the connection ended without an answer"
    if isinstance(answer, httpx.Response):
        answer = Answer(answer.status_code, answer.reason_phrase, answer.headers.multi_items(), answer.content, True)
    assert answer.whole
    assert answer.all("content-type") == ["application/json"], (answer.status, answer.body[:500])
    said = msgspec.json.decode(answer.body)
    assert set(said) == {"ok", "error", "data"}
    assert said["ok"] is False
    # As clients of other APIs expect it.
    assert set(said["error"]) == {"message", "type", "code"}
    assert said["error"]["message"].endswith(".")
    assert said["error"]["type"].endswith("_error")
    assert said["error"]["code"] == said["data"]["code"]
    assert answer.all("x-request-id") == [said["data"]["requestId"]]
    assert answer.all("x-service-error") == [said["data"]["code"]]
    return answer.status, said["data"]["code"]
