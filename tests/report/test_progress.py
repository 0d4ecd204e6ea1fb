from __future__ import annotations

import io
import time

from perfvec.report.progress import progress_bar, silent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_where_there_is_no_terminal():
    stream = io.StringIO()
    with progress_bar(stream, delay_s=0.0) as show:
        show("tracing", 1, 2)
        time.sleep(0.05)
    assert show is silent
    assert stream.getvalue() == ""


def test_a_short_block_draws_nothing():
    stream = Terminal()
    with progress_bar(stream, delay_s=60.0) as show:
        show("tracing", 1, 2)
    assert stream.getvalue() == ""


def test_a_long_block_draws_a_bar_with_its_count():
    stream = Terminal()
    with progress_bar(stream, delay_s=0.0) as show:
        show("tracing", 0, 0)
        deadline = time.monotonic() + 10
        while "reading" not in stream.getvalue() and time.monotonic() < deadline:
            show("reading", 3, 7)
            time.sleep(0.02)
    assert "reading" in stream.getvalue()
    assert "3/7" in stream.getvalue()
