"""`make conformance`: piglit's OpenCL program tests on PerfVec's executor, and beside it on Oclgrind and PoCL.

The tests are read where Debian's package `piglit` puts them. A test is a `[test]` section of a file, or a file without
such sections, which tests the build alone. The last line is JSON: tests passed, failed and skipped by executor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from experiments.conformance.executors import EXECUTORS, is_installed
from experiments.conformance.judge import Outcome
from experiments.conformance.pool import PADDING_STEP, run_files

_PACKAGE = "piglit"
_VERDICTS = ("passed", "failed", "skipped")
_LEAST_PASSED = 0.98
_SHOWN = 300  # characters of a cause
Outcomes: TypeAlias = dict[Path, list[Outcome]]


def find_tests() -> tuple[Path, ...]:
    """The package's files of tests.

    Raises:
        SystemExit: The package is not installed.
    """
    try:
        listed = subprocess.run(["dpkg", "-L", _PACKAGE], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(f"the Debian package {_PACKAGE} is not installed (apt-get install {_PACKAGE})") from None
    return tuple(sorted(Path(line) for line in listed.splitlines() if line.endswith(".cl")))


def package_root(paths: Sequence[Path]) -> Path:
    """The folder that the tests' own paths begin from: it has `tests` and `generated_tests`."""
    return Path(os.path.commonpath([path.parent for path in paths]))


def run_executor(name: str, paths: Sequence[Path], *, processes: int, padding_bytes: int) -> Outcomes:
    """Run all tests on one executor, with a line of progress where someone looks."""
    start, done = time.perf_counter(), Counter[str]()

    def report(path: Path) -> None:
        done[path.suffix] += 1
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{name}: {done.total()} of {len(paths)} files, {time.perf_counter() - start:.0f} s ")
            sys.stderr.flush()

    folder = package_root(find_tests())
    outcomes = run_files(name, paths, folder=folder, processes=processes, report=report, padding_bytes=padding_bytes)
    sys.stderr.write("\n" if sys.stderr.isatty() else "")
    sys.stdout.write(f"{name}: {time.perf_counter() - start:.0f} s\n")
    sys.stdout.flush()
    return outcomes


def count_tests(outcomes: Outcomes) -> dict[str, int]:
    """Tests by verdict."""
    counts = Counter(outcome.verdict for found in outcomes.values() for outcome in found)
    return {verdict: counts[verdict] for verdict in _VERDICTS}


def count_files(outcomes: Outcomes) -> dict[str, int]:
    """Files by verdict: failed where a test failed, skipped where all were."""
    verdicts = [{outcome.verdict for outcome in found} for found in outcomes.values()]
    counts = Counter("failed" if "failed" in v else "passed" if "passed" in v else "skipped" for v in verdicts)
    return {verdict: counts[verdict] for verdict in _VERDICTS}


def write_causes(name: str, outcomes: Outcomes, verdict: str, root: Path) -> None:
    """Name each test of one verdict with its cause; tests of a file that share it stand in one line."""
    for path, found in outcomes.items():
        causes: dict[str, list[str]] = {}
        for outcome in found:
            if outcome.verdict == verdict:
                causes.setdefault(outcome.cause, []).append(outcome.test)
        for cause, tests in causes.items():
            names = tests[0] if len(tests) == 1 else f"{len(tests)} tests, first {tests[0]}"
            text = " ".join(cause.split())[:_SHOWN]
            sys.stdout.write(f"{name} {verdict}: {path.relative_to(root)} ({names}): {text}\n")


def write_table(results: dict[str, Outcomes]) -> None:
    """Tests and files by folder and verdict."""
    sys.stdout.write(f"{'':12}{'tests':>8}{'passed':>8}{'failed':>8}{'skipped':>8}{'files':>8}")
    sys.stdout.write(f"{'passed':>8}{'failed':>8}{'skipped':>8}\n")
    for name, outcomes in results.items():
        tests, files = count_tests(outcomes), count_files(outcomes)
        row = (sum(tests.values()), *tests.values(), sum(files.values()), *files.values())
        sys.stdout.write(f"{name:12}" + "".join(f"{number:8}" for number in row) + "\n")


def main() -> None:
    """Run the tests and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=tuple(EXECUTORS), default=tuple(EXECUTORS), help="executors")
    parser.add_argument("--match", default="", help="only files whose path contains this")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), help="children at once")
    parser.add_argument("--causes", action="store_true", help="name the failing tests of all executors, not only ours")
    parser.add_argument(
        "--padding",
        type=int,
        default=0,
        help="bytes of zeros that every executor's buffers have behind what the tests ask for, as memory of real "
        f"devices has; a multiple of {PADDING_STEP}",
    )
    options = parser.parse_args()
    if options.padding < 0 or options.padding % PADDING_STEP:
        parser.error(f"--padding {options.padding}: must be 0 or a positive multiple of {PADDING_STEP}")
    paths = find_tests()
    root = package_root(paths)
    paths = tuple(path for path in paths if options.match in str(path))
    results: dict[str, Outcomes] = {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["POCL_CACHE_DIR"] = cache  # so that no run depends on an earlier one
        for name in filter(is_installed, options.only):
            results[name] = run_executor(name, paths, processes=options.processes, padding_bytes=options.padding)
    for name in options.only:
        if name not in results:
            sys.stdout.write(f"{name} is not installed\n")
    for name, outcomes in results.items():
        if name == "ours" or options.causes:
            write_causes(name, outcomes, "failed", root)
            write_causes(name, outcomes, "skipped", root)
    write_table(results)
    counts = {name: count_tests(outcomes) for name, outcomes in results.items()}
    sys.stdout.write(json.dumps(counts) + "\n")
    ours = counts.get("ours", {"passed": 1})
    sys.exit(ours["passed"] < _LEAST_PASSED * sum(ours.values()))


if __name__ == "__main__":
    main()
