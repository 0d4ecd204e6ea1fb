"""A progress bar for what takes longer than two seconds, on stderr and only if that is a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeAlias, final

if TYPE_CHECKING:
    from rich.progress import TaskID

DELAY_S = 2.0

# Hears what is being done, how many steps of it are done, and how many there are; 0 of 0 where nobody knows.
OnProgress: TypeAlias = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def progress_bar(stream: TextIO, *, delay_s: float = DELAY_S) -> Iterator[OnProgress]:
    """A bar that appears if the block lasts long enough, and goes with it.

    Args:
        stream: Where to draw it; nothing is drawn unless it is a terminal.
        delay_s: How long the block has to last; 0 or more.
    """
    if not stream.isatty():
        yield silent
        return
    bar = _DelayedBar(stream)
    timer = threading.Timer(delay_s, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield bar.show
    finally:
        timer.cancel()
        bar.stop()


@final
class _DelayedBar:
    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=Console(file=stream),
            transient=True,
        )
        self._lock = threading.Lock()
        self._is_over = False
        self._tasks: dict[str, TaskID] = {}

    def start(self) -> None:
        """Appear, unless the block has ended meanwhile."""
        with self._lock:
            if not self._is_over:
                self._progress.start()

    def stop(self) -> None:
        with self._lock:
            self._is_over = True
            self._progress.stop()

    def show(self, what: str, done: int, total: int) -> None:
        """Note where the work is; one line for each kind of work, those that are done vanish."""
        for name, task in self._tasks.items():
            if name != what:
                self._progress.update(task, visible=False)
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total or None, count="")
        count = f"{done}/{total}" if total else ""
        self._progress.update(self._tasks[what], completed=done, total=total or None, count=count, visible=True)
