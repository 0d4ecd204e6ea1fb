"""A child process that runs tests on one executor, because an OpenCL platform may end its process or never answer.

Its arguments are the executor and the bytes that are added to each buffer. It reads one JSON request a line (`path`,
`first`: the number of the first test to run) and answers with JSON lines: `{"built": true}`, then `{"test", "verdict",
"cause"}` for each test, then `{"done": true}`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from experiments.conformance.executors import EXECUTORS
from experiments.conformance.judge import judge
from experiments.conformance.reader import read_file


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # kernels print
    os.dup2(nowhere, sys.stderr.fileno())  # platforms report there what they also return
    executor = EXECUTORS[sys.argv[1]](padding_bytes=int(sys.argv[2]))

    def answer(record: dict[str, object]) -> None:
        answers.write(json.dumps(record) + "\n")
        answers.flush()

    for line in sys.stdin:
        request = json.loads(line)
        for outcome in judge(executor, read_file(Path(request["path"])), first=request["first"]):
            answer({"built": True} if outcome is None else asdict(outcome))
        answer({"done": True})


if __name__ == "__main__":
    main()
