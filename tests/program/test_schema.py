"""docs/format.md names every feature, entry of the context and resource, and nothing else."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from perfvec.program.counts import TOKEN_UNITS
from perfvec.program.features import CONTEXT_NAMES, FEATURE_NAMES, FEATURES_VERSION, SHARES
from perfvec.resources import COUNTED, RESOURCES_VERSION, TIMED
from perfvec.trace_data import CONTEXT_FIELDS

TEXT = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
SECTION = TEXT[TEXT.index("## perfvec-features") : TEXT.index("## perfvec-model")]


def rows(after: str) -> list[list[str]]:
    """Cells of the table that follows a text of the section."""
    table = SECTION[SECTION.index(after) :].split("\n\n")[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_column_of_token_features_is_in_one_row():
    assert f"(features of version {FEATURES_VERSION})" in SECTION
    patterns = [name for row in rows("Columns of `token_features`") for name in names(row[0])]
    assert all(sum(fnmatchcase(name, pattern) for pattern in patterns) == 1 for name in FEATURE_NAMES)
    assert all(any(fnmatchcase(name, pattern) for name in FEATURE_NAMES) for pattern in patterns)


def test_every_resource_is_there_with_its_unit():
    assert f"(of version {RESOURCES_VERSION};" in SECTION
    *table, timed = rows("Columns of `token_units`")
    assert [(name, row[1]) for row in table for name in names(row[0])] == [(r.name, r.unit) for r in COUNTED]
    (pattern,) = names(timed[0])
    assert all(fnmatchcase(r.name, pattern) and r.unit == timed[1] for r in TIMED)
    assert not any(fnmatchcase(r.name, pattern) for r in COUNTED)
    assert [name for row in table if row[2] == "yes" for name in names(row[0])] == list(TOKEN_UNITS)


def test_the_context_is_what_the_trace_says_and_the_resources():
    plain = [row[0].strip("`") for row in rows("Entries of `context`") if "any" not in row[0]]
    assert plain == list(SHARES)
    others = [f"log_{name}" for name in (*CONTEXT_FIELDS, *(r.name for r in COUNTED)) if name not in SHARES]
    assert sorted(CONTEXT_NAMES) == sorted([*plain, *others])
    trace = TEXT[TEXT.index("## perfvec-trace") : TEXT.index("## perfvec-measured")]
    assert set(CONTEXT_FIELDS) <= set(names(trace[trace.index("\nContext:") :]))
