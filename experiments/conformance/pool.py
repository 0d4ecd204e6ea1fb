"""Runs files of tests in child processes and survives those that die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, final

from experiments.conformance.judge import Outcome, names_of_tests
from experiments.conformance.reader import read_file

_ROOT = Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, "-m", "experiments.conformance.worker")
_SILENCE_S = 60.0  # no test takes that long
PADDING_STEP = 128  # bytes of the largest element, so that padding is whole elements


def run_files(
    executor: str,
    paths: Sequence[Path],
    *,
    folder: Path,
    processes: int,
    report: Callable[[Path], None],
    padding_bytes: int = 0,
) -> dict[Path, list[Outcome]]:
    """Run all tests of some files on one executor.

    Args:
        executor: Name in `executors.EXECUTORS`.
        paths: The files.
        folder: Where the children run: build options name folders relative to it.
        processes: How many children run at once.
        report: Called with each file once its tests are done.
        padding_bytes: Zeros that are added to each buffer; a multiple of `PADDING_STEP`.

    Returns:
        The outcomes by file, in the order of its tests.
    """
    idle: SimpleQueue[_Child] = SimpleQueue()
    children = [_Child((executor, str(padding_bytes)), folder) for _ in range(processes)]
    for child in children:
        idle.put(child)

    def run(path: Path) -> list[Outcome]:
        child = idle.get()
        try:
            return list(child.run(path))
        finally:
            idle.put(child)
            report(path)

    try:
        with ThreadPoolExecutor(processes) as threads:
            return dict(zip(paths, threads.map(run, paths), strict=True))
    finally:
        for child in children:
            child.end()


@final
class _Child:
    """A child process, started when it is needed and again when it has died."""

    def __init__(self, arguments: tuple[str, ...], folder: Path) -> None:
        self._arguments, self._folder = arguments, folder
        self._process: subprocess.Popen[str] | None = None
        self._is_late = False

    def run(self, path: Path) -> Iterator[Outcome]:
        """Run the tests of a file; where the child dies, the test at hand has failed, or all that need its build."""
        names = names_of_tests(read_file(path))
        first = 0
        while first < len(names):
            is_built = False
            for record in self._ask({"path": str(path), "first": first}):
                if "test" in record:
                    yield Outcome(**record)
                    first += 1
                is_built = is_built or "built" in record
            if first == len(names):
                return
            cause = self._cause_of_death()
            lost = names[first : first + 1] if is_built else names[first:]
            yield from (Outcome(test=name, verdict="failed", cause=cause) for name in lost)
            first += len(lost)

    def _ask(self, request: dict[str, object]) -> Iterator[dict[str, Any]]:
        """The child's answers up to its last word or its death."""
        process = self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        while True:
            watch = threading.Timer(_SILENCE_S, self._kill_late)
            watch.start()
            line = process.stdout.readline()
            watch.cancel()
            record = json.loads(line) if line.endswith("\n") else {"done": True}
            if "done" in record:
                return
            yield record

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._is_late = False
            self._process = subprocess.Popen(
                [*_COMMAND, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
            )
        return self._process

    def _kill_late(self) -> None:
        self._is_late = True
        if self._process is not None:
            self._process.kill()

    def _cause_of_death(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        if self._is_late:
            return f"no answer within {_SILENCE_S:g} s"
        return f"the process died of signal {-code}" if code < 0 else f"the process ended with status {code}"

    def end(self) -> None:
        """End the child; it stops when there is nothing more to read."""
        if self._process is None:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
