from __future__ import annotations

import pytest

from perfvec.report.tables import Column, Table, markdown, render

TABLE = Table(
    columns=(Column(title="device"), Column(title="time", is_number=True)),
    rows=(("nvidia-h200", "1.5 µs"), ("a|b [red]", "12 ms")),
)


def test_a_table_for_a_pipe_is_aligned_text():
    assert render(TABLE, is_terminal=False).splitlines() == [
        "device         time",
        "nvidia-h200  1.5 µs",
        "a|b [red]     12 ms",  # nothing is taken for markup
    ]


def test_rows_for_a_pipe_stay_on_one_line():
    wide = Table(columns=(Column(title="name"), Column(title="x")), rows=(("word " * 50, "1"),))
    assert len(render(wide, is_terminal=False).splitlines()) == 2


def test_a_table_for_a_terminal_has_a_rule(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "───" in render(TABLE, is_terminal=True)


def test_a_title_stands_above():
    titled = Table(columns=TABLE.columns, rows=TABLE.rows, title="unseen-kernel")
    assert render(titled, is_terminal=False).splitlines()[0].strip() == "unseen-kernel"
    assert markdown(titled).splitlines()[0] == "**unseen-kernel**"


def test_markdown():
    assert markdown(TABLE).splitlines() == [
        "| device | time |",
        "| :-- | --: |",
        "| nvidia-h200 | 1.5 µs |",
        "| a\\|b [red] | 12 ms |",
    ]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="a row has 1 cells"):
        Table(columns=TABLE.columns, rows=(("one",),))
