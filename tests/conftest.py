"""Counts of what the oracles confirmed, printed at the end of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.opencl import oclgrind_device

_PROPERTY = "confirmed by an oracle"


@pytest.fixture
def front_end() -> None:
    """What compiles OpenCL C; the test skips where it is missing."""
    oclgrind_device()


@pytest.fixture
def confirm(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Say what an oracle confirmed, and how many times; equal texts are added up over all tests that pass."""

    def note(what: str, times: int = 1) -> None:
        request.node.user_properties.append((_PROPERTY, (what, times)))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # From the reports, because these reach this process also where tests run in others.
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == _PROPERTY:
                counts[value[0]] += value[1]
    if counts:
        terminalreporter.section("oracles")
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:6d} {what}")
