"""Tables: for a terminal, plain where it is none, and as Markdown."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import final

# No table is wider; where there is no terminal, nobody has to wrap.
PLAIN_WIDTH = 400


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        title: Its head.
        is_number: Whether it is aligned to the right.
    """

    title: str
    is_number: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells as texts.

    Attributes:
        columns: What each row has.
        rows: As many cells each as there are columns.
        title: Above the table; "" for none.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row has {len(row)} cells, {row}; the table has {len(self.columns)} columns")


def render(table: Table, *, is_terminal: bool) -> str:
    """The table as text, without a line break at its end.

    Args:
        table: The table.
        is_terminal: Draw lines, and fit the width of the terminal; else columns of text, each row one line.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=Text(table.title) if table.title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD if is_terminal else None,
        pad_edge=False,
    )
    for column in table.columns:
        drawn.add_column(
            Text(column.title),
            justify="right" if column.is_number else "left",
            no_wrap=not is_terminal,
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    if is_terminal:
        console = Console(file=io.StringIO(), force_terminal=True, width=Console().width)
    else:
        console = Console(file=io.StringIO(), force_terminal=False, color_system=None, width=PLAIN_WIDTH)
    with console.capture() as capture:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


def markdown(table: Table) -> str:
    """The table in Markdown, without a line break at its end."""
    lines = [f"**{table.title}**", ""] if table.title else []
    lines.append(_markdown_row([column.title for column in table.columns]))
    lines.append(_markdown_row(["--:" if column.is_number else ":--" for column in table.columns]))
    lines.extend(_markdown_row(row) for row in table.rows)
    return "\n".join(lines)


def _markdown_row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
