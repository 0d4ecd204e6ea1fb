"""`python -m experiments.devices.split SPACE -o archs/spaces/splits/SPACE.toml`: fix which devices are held out.

A quarter of the sample, by a hash of the seed and the number.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from perfvec.arch.space import sample_digest
from perfvec.arch.space_files import find_space
from perfvec.errors import PerfVecError
from perfvec.files import whole_file


def main() -> int:
    """Write the split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("space", metavar="SPACE", help="name of a design space")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--devices", type=int, default=256, metavar="N", help="devices of the sample")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        devices = find_space(options.space).sample(options.devices, seed=options.seed)
        ranked = sorted(
            range(len(devices)), key=lambda number: hashlib.sha256(f"{options.seed}/{number}".encode()).hexdigest()
        )
        held_out = sorted(ranked[: len(devices) // 4])
        with whole_file(options.output) as temporary:
            temporary.write_text(
                f"# Which devices of the sample nothing is tuned on. Made by experiments.devices.split.\n"
                f"num_devices = {len(devices)}\nseed = {options.seed}\n"
                f'digest = "{sample_digest(devices)}"\nheld_out = {held_out}\n',
                encoding="utf-8",
            )
    except PerfVecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{len(devices) - len(held_out)} for training, {len(held_out)} held out: {options.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
