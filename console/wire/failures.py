"""Failures between the console and the API, each with a sentence for the person. Pure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True)
class Patience:
    """Waiting times between attempts, in seconds."""

    connect: float = 5.0
    # For the next piece of an answer, and for all of it: signing may wait for a node, the rest takes a fraction of it.
    silence: float = 30.0
    answer: float = 60.0
    # The stream sends something every 15 seconds; silence beyond this is a dead connection.
    stream_silence: float = 40.0
    # Between one failure and the next try: at once would not help anybody, and a minute is long for who waits.
    again: tuple[float, ...] = (1, 2, 4, 8, 15, 30)

    def again_in(self, failures: int) -> float:
        """Return the wait after so many failures in a row (1 or more)."""
        return self.again[min(failures, len(self.again)) - 1]


class Failure(Exception):
    """A request that failed; `sentence` says why in plain words."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)


class Away(Failure):
    """The API could not be reached, or did not answer in time: it may be asked again."""


class AnswerLost(Away):
    """Something was sent and no answer came: it may have happened or not. Ask again under the same key."""


class Malformed(Failure):
    """The API answered what this console does not understand."""


class Answered(Failure):
    """The API refused, in its own words: `status`, `code` for programs, `data` with what it adds."""

    def __init__(self, sentence: str, *, status: int, code: str, data: dict[str, Any]) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.data = data


class SignedOut(Answered):
    """401: the credential is not, or not any longer, good."""


class Unproven(Answered):
    """401 for what came beside the credential: a code of a second factor, the signature of a request."""


class Forbidden(Answered):
    """403: this person or key may not."""


class MfaRequired(Forbidden):
    """403: a second factor must be shown first. `methods` are those that the person has."""

    @property
    def methods(self) -> list[str]:
        found = self.data.get("methods")
        return [str(one) for one in found] if isinstance(found, list) else []


class Absent(Answered):
    """404: there is no such thing."""


class Conflicted(Answered):
    """409: it does not fit the present state, which somebody else may have changed."""


class TooFast(Answered):
    """429: ask again in `retry_after` seconds."""

    retry_after: int = 1


class Faulty(Answered):
    """5xx: the service, or something behind it, could not."""


class ReadOnly(Failure):
    """This console was started with --read-only."""

    def __init__(self) -> None:
        super().__init__("This console is read-only; start it without --read-only to make changes.")


# 401 with one of these says nothing of the session: signing in again would not help.
_BESIDE: Final = ("code_invalid", "signature_", "request_")
_KINDS: Final[dict[int, type[Answered]]] = {401: SignedOut, 403: Forbidden, 404: Absent, 409: Conflicted, 429: TooFast}


def failure_of(
    status: int, sentence: str, data: dict[str, Any], *, retry_after: int = 1, request_id: str = ""
) -> Answered:
    """The failure of a response. A 5xx without a message names the request, for readers of the log."""
    code = str(data.get("code", ""))
    kind = MfaRequired if status == 403 and code == "mfa_required" else _KINDS.get(status)
    if status == 401 and code.startswith(_BESIDE):
        kind = Unproven
    if kind is None:
        kind = Faulty if status >= 500 else Answered
    if status >= 500 and request_id:
        sentence = f"{sentence} (request {request_id})"
    failure = kind(sentence, status=status, code=code, data=data)
    if isinstance(failure, TooFast):
        failure.retry_after = retry_after
    return failure


def bug_sentence(problem: BaseException, program: str = "the console") -> str:
    """The message about a bug in a program: its kind and place, for developers; never a value."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
    return f"Internal error of {program} ({type(problem).__name__}{where})."
