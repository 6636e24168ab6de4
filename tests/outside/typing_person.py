"""Somebody at a real terminal: waits for what a program asks, types, and keeps all that the terminal showed."""

import os
from collections.abc import Callable, Mapping, Sequence

Typed = str | Callable[[str], str]


def type_at_a_terminal(
    command: Sequence[str], environment: Mapping[str, str], answers: Mapping[str, Typed], most: int = 100
) -> tuple[int, str]:
    """Run a program at a terminal of its own: its exit status, and what was shown.

    Each time that what is shown ends with a question of `answers`, its answer is typed; it may be made of all that
    was shown so far.
    """
    child, terminal = os.forkpty()
    if child == 0:
        os.execve(command[0], list(command), dict(environment))
    shown, answered = "", 0
    try:
        while piece := _read(terminal):
            shown += piece
            for question, answer in answers.items():
                if shown.endswith(question) and answered < most:
                    answered += 1
                    text = answer(shown) if callable(answer) else answer
                    os.write(terminal, f"{text}\n".encode())
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown
    finally:
        os.close(terminal)


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 4096).decode("utf-8", "replace")
    except OSError:
        return ""
