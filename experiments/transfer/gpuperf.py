"""`python -m experiments.transfer.gpuperf`: Rodinia kernels by size and geometry on GPUs, a new one by k launches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.transfer.harness import arguments, device_facts, new_device, write

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RANK = 8
_KEY = ["application", "kernel", "input_size_1", "input_size_2", "grid_x", "grid_y", "block_x", "block_y"]
# Launches of a kernel: neighbours in size say the same.
_PER_KERNEL = 60


def load(data: Path) -> tuple[Floats, Floats, list[str]]:
    """Log times `(N, M)`, features `(N, A)` and devices: launches that all of them have, some of each kernel."""
    import pandas as pd

    table = pd.read_csv(data / "svm_gpuperf" / "rodinia_kernels.csv.gz", low_memory=False)
    times = table.pivot_table(index=_KEY, columns="device", values="runtime_s", aggfunc="median")
    # One kernel lacks two GPUs; all others are complete.
    times = times.dropna()
    kernels = times.index.get_level_values("kernel").to_numpy()
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(kernels == name))[:_PER_KERNEL] for name in sorted(set(kernels))]
    )
    times, kernels = times.iloc[rows], kernels[rows]
    sizes = np.stack([np.log1p(times.index.get_level_values(name).to_numpy(float)) for name in _KEY[2:]], axis=1)
    flags = np.stack([kernels == name for name in sorted(set(kernels))], axis=1).astype(float)
    return np.log(times.to_numpy()), np.concatenate([sizes, flags], axis=1), list(times.columns)


def main() -> None:
    """Run."""
    options = arguments(__doc__, "gpuperf")
    log_times, features, devices = load(options.data)
    told = new_device(log_times, device_facts(options.data, devices), rank=RANK, features=features)
    record = {"launches": len(log_times), "devices": devices, "new device": told}
    write(options.output, record, plot=told, title="Rodinia (svm-gpuperf), a new GPU")


if __name__ == "__main__":
    main()
