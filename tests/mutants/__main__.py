"""`make mutants`, or `make mutants ONLY=custody/policies/judge.py`: fails on a survivor that is not listed, and on a
listed one that a test notices by now. Half an hour to an hour on two cores; MUTANT_PROCESSES says how many it takes."""

import gc
import importlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from _pytest.config import default_plugins

from tests.mutants import survivors, tried
from tests.mutants.drawn import ROOT, Mutant, draw_mutants, files
from tests.mutants.tried import Covered

# Seconds that a fork takes to load everything first.
_LOADING = 20
# How many tests must pass where a file is loaded unchanged, before any change of it is tried.
_CONTROLS = 20
PROCESSES = int(os.environ.get("MUTANT_PROCESSES", "2"))
# What a fork need not load again: packages that our modules and the tests load, and none of our modules.
_FOREIGN = ("Crypto.Hash.keccak", "coincurve", "cryptography", "embit.psbt", "eth_account", "pytest_asyncio", "solders")
_PYTEST = tuple(f"_pytest.{name}" for name in default_plugins)

type Verdicts = dict[int, bool | None]


def main(only: Sequence[str]) -> int:
    """Draw, try, and compare with the list."""
    chosen = [file for file in files() if not only or any(file.startswith(path) for path in only)]
    if not chosen:
        print(f"mutants: no such file is mutated; the files are\n  {'\n  '.join(files())}", file=sys.stderr)
        return 2
    began = time.monotonic()
    mutants = [mutant for file in chosen for mutant in draw_mutants(file)]
    print(f"mutants: {len(mutants)} of {len(chosen)} files drawn in {time.monotonic() - began:.0f} s", flush=True)
    covered, noticed = _within(mutants)
    for name in (*_FOREIGN, *_PYTEST):
        importlib.import_module(name)
    gc.freeze()
    noticed |= _when_loaded(mutants, covered, noticed)
    _count(mutants, noticed)
    print(f"mutants: {len(mutants) / (time.monotonic() - began):.1f} a second", flush=True)
    return _compare(mutants, covered, noticed, chosen)


def _within(mutants: Sequence[Mutant]) -> tuple[Covered, Verdicts]:
    """Try what is inside functions, from a process that has collected the tests."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results")
        child = os.fork()
        if not child:
            code = 1
            try:

                def tell(covered: Covered, notices: Callable[..., bool | None]) -> None:
                    jobs = [
                        (number, partial(notices, mutant, tests), sum(covered.seconds[test] for test in tests))
                        for number, mutant in enumerate(mutants)
                        if mutant.within and (tests := covered.of(mutant))
                    ]
                    first = _teller(mutants, {number for number, m in enumerate(mutants) if _loads(m, covered)})
                    results.write_bytes(msgspec.json.encode((covered, _try(jobs, "in functions", first))))

                code = tried.Session(tried.tests_for([mutant.file for mutant in mutants]), tell).run()
            finally:
                os._exit(code)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not results.exists():
            raise SystemExit("mutants: the tests do not pass as they are")
        return msgspec.json.decode(results.read_bytes(), type=tuple[Covered, dict[int, bool | None]])


def _when_loaded(mutants: Sequence[Mutant], covered: Covered, noticed: Verdicts) -> Verdicts:
    """Try what modules do when they are loaded, and the functions that they call then."""
    users = tried.users_of(files())
    jobs = []
    for number, mutant in enumerate(mutants):
        if noticed.get(number) or not (_loads(mutant, covered) or noticed.get(number, False) is None):
            continue
        tests = covered.near(mutant, users)
        work = partial(tried.notices_when_loaded, mutant, tests)
        jobs.append((number, work, _LOADING + sum(covered.seconds[test] for test in tests)))
    _check_loading([mutants[number] for number, _, _ in jobs], covered, users)
    return _try(jobs, "when loaded", _teller(mutants))


def _check_loading(mutants: Sequence[Mutant], covered: Covered, users: dict[str, list[str]]) -> None:
    """Load each of the files unchanged: a test that fails then would seem to notice every change of it."""
    jobs = [
        (
            number,
            partial(tried.notices_when_loaded, mutant._replace(source=(ROOT / mutant.file).read_text()), tests),
            _LOADING,
        )
        for number, mutant in enumerate({mutant.file: mutant for mutant in mutants}.values())
        if (tests := covered.near(mutant, users)[:_CONTROLS])
    ]
    if any(_try(jobs, "unchanged", lambda _: None).values()):
        raise SystemExit("mutants: a test fails where modules are loaded again, without any change; mend it first")


def _loads(mutant: Mutant, covered: Covered) -> bool:
    """Say whether the change is of what runs while modules are loaded."""
    return not mutant.within or not set(mutant.lines).isdisjoint(covered.loaded.get(mutant.file, ()))


def _teller(mutants: Sequence[Mutant], besides: Container[int] = ()) -> Callable[[int], None]:
    """Tell of a survivor that is on no list as soon as it is one, for the run is long; not of those tried again."""
    listed = {entry.name for entry in survivors.read(survivors.LIST.read_text())}

    def tell(number: int) -> None:
        if number not in besides and mutants[number].name not in listed:
            print(f"survives: {survivors.lines_of(mutants[number].name)}", flush=True)

    return tell


def _try(
    jobs: Sequence[tuple[int, Callable[[], bool | None], float]], where: str, lived: Callable[[int], None]
) -> Verdicts:
    """Run each job in a fork of its own, as many at a time as there are processes; what dies has been noticed."""
    running: dict[int, int] = {}
    found: Verdicts = {}
    began = time.monotonic()

    def take_verdict() -> None:
        child, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        number = running.pop(child)
        found[number] = {0: False, 3: None}.get(code, True)
        if code == 0:
            lived(number)
        if len(found) % 200 == 0:
            print(f"mutants: {len(found)} of {len(jobs)} {where}, {time.monotonic() - began:.0f} s", flush=True)

    for number, work, seconds in jobs:
        if len(running) >= PROCESSES:
            take_verdict()
        running[tried.fork(work, seconds)] = number
    while running:
        take_verdict()
    return found


def _survivors(mutants: Sequence[Mutant], noticed: Verdicts) -> Iterator[Mutant]:
    return (mutant for number, mutant in enumerate(mutants) if not noticed.get(number))


def _count(mutants: Sequence[Mutant], noticed: Verdicts) -> None:
    drawn_of, lived = Counter(mutant.file for mutant in mutants), Counter[str]()
    kinds = {entry.name: entry.kind for entry in survivors.read(survivors.LIST.read_text())}
    by_kind = Counter[tuple[str, str]]()
    for mutant in _survivors(mutants, noticed):
        lived[mutant.file] += 1
        by_kind[mutant.file, kinds.get(mutant.name, "new")] += 1
    columns = (*survivors.CLASSES, "new")
    print(f"{'file':56}{'drawn':>7}{'noticed':>9}" + "".join(f"{kind:>12}" for kind in columns))
    for file in [*drawn_of, ""]:
        of = [file] if file else list(drawn_of)
        total, alive = sum(drawn_of[one] for one in of), sum(lived[one] for one in of)
        counts = "".join(f"{sum(by_kind[one, kind] for one in of):>12}" for kind in columns)
        print(f"{file or 'together':56}{total:>7}{total - alive:>9}{counts}")


def _compare(mutants: Sequence[Mutant], covered: Covered, noticed: Verdicts, chosen: Sequence[str]) -> int:
    listed = survivors.read(survivors.LIST.read_text())
    survived = list(_survivors(mutants, noticed))
    new = survivors.new(survived, listed)
    names = {mutant.name for mutant in survived}
    dead = [entry for entry in listed if entry.name[0] in chosen and entry.name not in names]
    for mutant in new:
        tests = covered.of(mutant)
        near = f"beside {tests[0].split('[')[0]}" if tests else "where none runs this line yet"
        print(f"\n{survivors.lines_of(mutant.name)}\n  line {mutant.lines[0]}: no test notices; write one, {near}")
    for entry in dead:
        print(f"\n{survivors.lines_of(entry.name)}\n  a test notices it now, or its line is gone: take it off the list")
    if new or dead:
        print(f"\nmutants: {len(new)} survive that are not listed, {len(dead)} are listed and do not", file=sys.stderr)
        print(
            "Write a test that fails with the changed line. Only what can never turn a question or a refusal into a "
            f"signature may go to {survivors.LIST.relative_to(ROOT)}, with its class and reason.",
            file=sys.stderr,
        )
    return int(bool(new or dead))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
