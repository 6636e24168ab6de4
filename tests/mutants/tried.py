"""Tries mutants with the pure tests: each in a process of its own, forked from one that has collected the tests.

A change inside a function replaces the function's code in the fork, and only the tests that ran its line run, the
quickest first. A change of what a module does when it is loaded needs a fork that has not loaded it yet.
"""

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants.drawn import ROOT, Mutant, files

# Every pure test that judges an order or its caller, or reads one.
TESTS = (
    "tests/rules/policies",
    "tests/rules/chains",
    "tests/rules/signer",
    "tests/rules/api/test_hardening.py",
    "tests/rules/identity/test_assertions.py",
    "tests/rules/identity/test_proofs.py",
    "tests/rules/identity/test_quorums.py",
    "tests/rules/identity/test_request_signature.py",
    "tests/chains/bitcoin",
)
_POLICIES = ("custody/policies/", "custody.policies")
# Without the fixtures of processes, without a cache between runs, and with no plugin that is not named. A later session
# in one process finds the plugins loaded, which is no error.
_LOADED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
_ARGUMENTS = ("-q", "--noconftest", "--capture=no", "--tb=line", "-p", "no:cacheprovider", *_LOADED)
_PLUGINS = ("-p", "pytest_asyncio.plugin", "-p", "_hypothesis_pytestplugin")
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
_TOOL = 4
_LINE = sys.monitoring.events.LINE
# Of processor time, beyond three times what the tests take without a change; a change that loops is found by it.
SPARE_SECONDS = 10
_MEMORY = 8 << 30
# An interpreter's own, before a library of the tests sets another.
_RECURSION_LIMIT = sys.getrecursionlimit()


class Covered(msgspec.Struct):
    """Coverage of a file's lines: tests by their ids, with the seconds each takes."""

    seconds: dict[str, float] = {}
    # By file, then by line, the tests that ran it.
    tests: dict[str, dict[int, list[str]]] = {}
    # By file, the lines that ran while modules were loaded.
    loaded: dict[str, list[int]] = {}

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that ran a line of the change, the quickest first."""
        lines = self.tests.get(mutant.file, {})
        found = {test for line in mutant.lines for test in lines.get(line, ())}
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def near(self, mutant: Mutant, users: dict[str, list[str]]) -> list[str]:
        """The tests that ran anything of its file, or of one that loads it, and those that name it: the latter
        first, then the file of tests with the most of its file, and the quickest of each first."""
        own, about, loading = self._of_file(mutant.file), Counter[str](), set(users.get(mutant.file, ()))
        # A test of what is declared runs nothing of the file that declares it.
        found = own.union(*map(self._of_file, loading), (test for test in self.seconds if path_of(test) in loading))
        for test in own:
            about[path_of(test)] += 1
        told = {path for path in loading if not about[path]}
        return sorted(
            found,
            key=lambda test: (
                path_of(test) not in told,
                -about[path_of(test)],
                path_of(test),
                self.seconds[test],
                test,
            ),
        )

    def _of_file(self, file: str) -> set[str]:
        return {test for tests in self.tests.get(file, {}).values() for test in tests}


def path_of(test: str) -> str:
    """The file that a test is in."""
    return test.partition("::")[0]


def tests_for(files: Sequence[str]) -> list[str]:
    """The files of tests that may run some of these: nothing but a test of rules loads the rules."""
    found = [path for test in TESTS for path in (sorted((ROOT / test).rglob("test_*.py")) or [ROOT / test])]
    if all(file.startswith(_POLICIES[0]) for file in files):
        found = [path for path in found if path.is_relative_to(ROOT / TESTS[0]) or _POLICIES[1] in path.read_text()]
    return [path.relative_to(ROOT).as_posix() for path in found]


_PHASES = (Phase.explicit, Phase.generate)
_SETTINGS = "_hypothesis_internal_use_settings"
# Of drawn examples: what only the hundredth finds is found by luck, and needs a test of its own.
_EXAMPLES = 20


def settle() -> None:
    """Let Hypothesis draw the same in every run, keep nothing, and lose no time on making an example small."""
    settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        phases=_PHASES,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutants")
    # As every process does when it begins; here, for a fork loads our modules only after one of them was changed.
    importlib.import_module("custody.chains.families").hand_in(
        importlib.import_module("custody.chains.built_in").LISTED
    )


def _fewer(items: Sequence[pytest.Item]) -> None:
    sys.setrecursionlimit(_RECURSION_LIMIT)
    for item in items:
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        if drawn := getattr(test, _SETTINGS, None):
            most = min(_EXAMPLES, drawn.max_examples)
            fewer = settings(drawn, max_examples=most, derandomize=True, database=None, phases=_PHASES)
            setattr(test, _SETTINGS, fewer)


class _Lines:
    """Takes down the lines of some files that run, once between two looks."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = {str(ROOT / file): file for file in files}
        self.found: dict[str, set[int]] = {}
        sys.monitoring.use_tool_id(_TOOL, "mutants")
        sys.monitoring.register_callback(_TOOL, _LINE, self._ran)
        sys.monitoring.set_events(_TOOL, _LINE)

    def _ran(self, code: CodeType, line: int) -> object:
        if file := self._files.get(code.co_filename):
            self.found.setdefault(file, set()).add(line)
        return sys.monitoring.DISABLE

    def only_in(self, codes: Sequence[CodeType]) -> None:
        """Look at nothing else from now on."""
        sys.monitoring.set_events(_TOOL, 0)
        for code in codes:
            sys.monitoring.set_local_events(_TOOL, code, _LINE)

    def take(self) -> dict[str, set[int]]:
        """Return the lines that ran since the last look."""
        found, self.found = self.found, {}
        sys.monitoring.restart_events()
        return found

    def stop(self) -> None:
        sys.monitoring.free_tool_id(_TOOL)


class Session:
    """A pytest session that has collected the tests, and forks for each mutant."""

    def __init__(self, tests: Sequence[str], tell: Callable[[Covered, Callable[..., bool | None]], None]) -> None:
        self._files, self._tests, self._tell = files(), tests, tell
        self._failed = False

    def run(self) -> int:
        """Collect, look which test runs what, then hand both to the caller."""
        self._lines = _Lines(self._files)
        return int(pytest.main([*_ARGUMENTS, *_PLUGINS, *self._tests], plugins=[self]))

    def pytest_sessionstart(self) -> None:
        settle()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every test once as it is, then those that a mutant needs, in forks."""
        covered = Covered(loaded={file: sorted(lines) for file, lines in self._lines.take().items()})
        self._lines.only_in([code for file in self._files for code in _codes(file)])
        _fewer(session.items)
        items = {item.nodeid: item for item in session.items}
        for test, item in items.items():
            began = time.process_time()
            self._one(item)
            covered.seconds[test] = time.process_time() - began
            for file, lines in self._lines.take().items():
                for line in lines:
                    covered.tests.setdefault(file, {}).setdefault(line, []).append(test)
        self._lines.stop()
        if self._failed:
            raise SystemExit("mutants: a test fails without any change; mend it first")
        gc.freeze()

        def notices(mutant: Mutant, tests: Sequence[str]) -> bool | None:
            if not _replace(mutant):
                return None
            for test in tests:
                self._one(items[test])
                if self._failed:
                    return True
            return False

        self._tell(covered, notices)
        return True

    def _one(self, item: pytest.Item) -> None:
        # As if it were the only test: what it sets up is torn down after it.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


class _Chosen:
    """Runs some tests of those that were collected, in the order given, and stops at the first that fails."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: number for number, test in enumerate(tests)}

    def pytest_sessionstart(self) -> None:
        """Settle before any test is read."""
        settle()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        _fewer(items)
        items[:] = sorted((i for i in items if i.nodeid in self._order), key=lambda item: self._order[item.nodeid])


def notices_when_loaded(mutant: Mutant, tests: Sequence[str]) -> bool:
    """In a fork that has loaded none of our modules: load the changed file in place of the real one, and test."""
    sys.meta_path.insert(0, _Changed(mutant))
    of_path: dict[str, list[str]] = {}
    for test in tests:
        of_path.setdefault(path_of(test), []).append(test)
    # A file of tests at a time, for to load them all takes longer than most of them.
    for path, chosen in of_path.items():
        code = pytest.main([*_ARGUMENTS, *_PLUGINS, "--assert=plain", "-x", path], plugins=[_Chosen(chosen)])
        # Tests that the changed table no longer makes are no tests that fail.
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return True
    return False


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant, self._module = mutant, module_of(mutant.file)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(ROOT / self._mutant.file))

    def get_source(self, fullname: str) -> str:
        return self._mutant.source


def fork(work: Callable[[], bool | None], seconds: float) -> int:
    """Begin it in a fork, and give its id; the exit code is 1 if it returns True or dies, 0 for False, 3 for None."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        empty = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(empty, stream)
        most = int(seconds * 3) + SPARE_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        signal.alarm(most * 12)
        noticed = work()
        code = 3 if noticed is None else int(noticed)
    finally:
        os._exit(code)


def module_of(file: str) -> str:
    """The name under which a file is loaded."""
    return file.removesuffix(".py").replace("/", ".")


def _codes(file: str) -> Iterator[CodeType]:
    """The code of every function of a loaded file, and of the functions in it."""
    module = sys.modules.get(module_of(file))
    pending = [function.__code__ for function in _functions(module)] if module else []
    while pending:
        code = pending.pop()
        yield code
        pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _functions(module: ModuleType) -> list[FunctionType]:
    """Every function that a module defines, also in its classes and below decorators."""
    found: dict[int, FunctionType] = {}
    pending: list[Any] = list(vars(module).values())
    seen: set[int] = set()
    while pending:
        thing = pending.pop()
        if id(thing) in seen or getattr(thing, "__module__", module.__name__) != module.__name__:
            continue
        seen.add(id(thing))
        if isinstance(thing, FunctionType):
            found[id(thing)] = thing
        if inspect.isclass(thing):
            pending += vars(thing).values()
        pending += [below for name in ("__wrapped__", "__func__", "fget") if (below := getattr(thing, name, None))]
    return list(found.values())


def _replace(mutant: Mutant) -> bool:
    """Put the changed code into the function that it is of; False where that one can't be found."""
    module = sys.modules.get(module_of(mutant.file))
    if module is None:
        return False
    path = str(ROOT / mutant.file)
    changed = {code.co_qualname: code for code in _all_codes(compile(mutant.source, path, "exec"))}
    found = False
    for function in _functions(module):
        if mutant.where == function.__qualname__ or mutant.where.startswith(f"{function.__qualname__}."):
            code = changed.get(function.__code__.co_qualname)
            if code is None or code.co_freevars != function.__code__.co_freevars:
                return False
            function.__code__ = code
            found = True
    # What was answered before the change is no answer of the changed code.
    for name, loaded in list(sys.modules.items()):
        if name.startswith("custody."):
            for thing in vars(loaded).values():
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()
    return found


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_codes(constant)


def users_of(files: Sequence[str]) -> dict[str, list[str]]:
    """By file, those of the same files and of tests that load it."""
    texts = {file: Path(ROOT / file).read_text() for file in (*files, *tests_for(files))}
    found: dict[str, list[str]] = {}
    for file in files:
        package, _, name = module_of(file).rpartition(".")
        # The last of all types of rules, which their package gathers.
        told = (f"from {package}.{name} import", f"from {package} import {name}", f"from {package} import KINDS")
        found[file] = [user for user, text in texts.items() if any(line in text for line in told)]
    return found
