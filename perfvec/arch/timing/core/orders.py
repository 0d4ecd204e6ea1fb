"""What orders an instruction: numbers that the loops and those who call them share, without what compiles the loops."""

from __future__ import annotations

# Nothing, a load of either kind of memory, what writes there, a branch, a barrier.
PLAIN, LOAD_LOCAL, LOAD_GLOBAL, WRITE_LOCAL, WRITE_GLOBAL, BRANCH, BARRIER = range(7)
