"""A program in the foreground is as if we had become it: input, output, signals, status."""

import os
import pty
import signal
import subprocess
import sys

import pytest

RUN = "import os, sys; from ops import foreground; sys.exit(foreground.run(sys.argv[1:], os.environ))"
COMMAND = [sys.executable, "-c", RUN]
# Says that it is there, and then which signals came; a third of a second is long enough for a second one to come.
LISTENS = """
import signal, sys, time
came = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _frame: came.append(signal.Signals(number).name))
print("there", flush=True)
while not came:
    time.sleep(0.01)
time.sleep(0.3)
print(*came, flush=True)
"""


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)])
def test_the_status_is_the_programs(script: str, status: int) -> None:
    assert subprocess.run([*COMMAND, "sh", "-c", script], check=False).returncode == status


def test_input_and_output_are_the_programs() -> None:
    ended = subprocess.run([*COMMAND, "cat"], input=b"through\0and through", capture_output=True, check=True)

    assert (ended.stdout, ended.stderr) == (b"through\0and through", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_sent_to_us_is_passed_on_once(number: signal.Signals) -> None:
    command = [*COMMAND, sys.executable, "-c", LISTENS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"

        process.send_signal(number)

        assert process.stdout.read() == f"{number.name}\n"
    assert process.returncode == 0


def test_a_key_of_the_terminal_reaches_the_program_once() -> None:
    """The terminal sends it to the whole group: were it passed on as well, Ctrl-C would count twice."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, sys.executable, "-c", LISTENS]
    with (
        os.fdopen(ours, "r+b", buffering=0) as terminal,
        subprocess.Popen(command, preexec_fn=lambda: os.login_tty(theirs)) as process,  # noqa: PLW1509
    ):
        os.close(theirs)
        assert terminal.readline() == b"there\r\n"

        terminal.write(b"\x03")

        assert terminal.readline().removeprefix(b"^C") == b"SIGINT\r\n"
        assert process.wait(90) == 0


def test_a_broken_pipe_ends_a_program_as_it_would_without_us() -> None:
    """Python ignores that signal, and a program must not inherit it."""
    assert subprocess.run([*COMMAND, "sh", "-c", "kill -PIPE $$"], check=False).returncode == 128 + signal.SIGPIPE


def test_a_program_that_is_not_there_is_an_error() -> None:
    ended = subprocess.run([*COMMAND, "no-such-program"], capture_output=True, text=True, check=False)

    assert "FileNotFoundError" in ended.stderr
