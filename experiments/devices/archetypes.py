"""`python -m experiments.devices.archetypes -o archs/archetypes.json`: fix the facts of the archetypes.

An archetype is a unit of the timed resources. Its facts are written down once for a version of the resources: what is
corrected in a device file afterwards makes that device's own vector better, and changes no coordinate. Run it where
`ARCHETYPES`, `CAUSES` or `TimingConfig` change, with a new `RESOURCES_VERSION`; the model must be trained anew then.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from perfvec.arch.device import find_device
from perfvec.arch.space_files import find_space, load_space_split
from perfvec.arch.timing.of_device import timing_config
from perfvec.errors import PerfVecError
from perfvec.files import whole_file
from perfvec.resources import ARCHETYPES, RESOURCES_VERSION


def facts_of(name: str) -> dict[str, object]:
    """Fields of an archetype's `TimingConfig`: of a device file, or of a device for training of a design space."""
    space, _, number = name.partition("/")
    if not number:
        return asdict(timing_config(find_device(name)))
    training = load_space_split(find_space(space)).training
    return asdict(next(item.config for item in training if item.number == int(number)))


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    try:
        lines = [f"{json.dumps(name)}: {json.dumps(facts_of(name))}" for name in ARCHETYPES]
        text = f'{{"resources_version": {RESOURCES_VERSION},\n"archetypes": {{\n' + ",\n".join(lines) + "\n}}\n"
        with whole_file(options.output) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except PerfVecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{len(ARCHETYPES)} archetypes of resources version {RESOURCES_VERSION}: {options.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
