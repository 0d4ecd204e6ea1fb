"""Counts of what the oracles confirmed, printed at the end of the run."""

from __future__ import annotations

from collections import Counter

import pytest

ORACLES = pytest.StashKey[Counter[str]]()


@pytest.fixture
def confirmed(request: pytest.FixtureRequest) -> Counter[str]:
    """Count here what an oracle confirmed; the keys are printed with their counts."""
    return request.config.stash.setdefault(ORACLES, Counter())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(ORACLES, None)
    if counts:
        terminalreporter.section("oracles")
        for key, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:6d} {key}")
