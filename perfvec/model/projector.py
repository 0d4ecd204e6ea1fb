"""Vectors for TensorBoard's projector: those of training launches and of all devices, with what they are.

The files are those that its projector reads from the folder of a run: a configuration, and for each set of vectors
their logarithms and a table of what each is. They are made whole, and made anew where they are there already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.files import whole_file
from perfvec.model.vectors import log_programs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from perfvec.model.training_set import TrainingSet
    from perfvec.model.weights import TrainedModel

# The projector computes in the browser; beyond some thousand points it is no pleasure.
MOST_LAUNCHES = 1000
PROGRAMS = "program_vectors"
DEVICES = "device_vectors"
_CONFIG_FILE = "projector_config.pbtxt"


def write_projector(folder: Path, model: TrainedModel, dataset: TrainingSet) -> None:
    """Write program vectors of some launches, and the vectors of all devices, for TensorBoard's projector.

    Program vectors are log10(1 + p ÷ little) (`log_programs`), device vectors log10 of seconds per unit. Launches have
    name, suite and family, devices have name and kind.

    Args:
        folder: Of the run's TensorBoard logs; it exists.
        model: The trained model.
        dataset: Launches; of more than `MOST_LAUNCHES`, so many at random, the same each time.

    Raises:
        FormatError: The folder does not exist.
    """
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig  # pyright: ignore[reportAttributeAccessIssue]

    count = min(MOST_LAUNCHES, len(dataset.launches))
    rows = np.sort(np.random.default_rng(0).permutation(len(dataset.launches))[:count])
    programs = log_programs(model.encode([dataset.launches[row] for row in rows]), model.encoder.layout)
    launches = [(dataset.launches[row].name, dataset.suites[row], dataset.families[row]) for row in rows]
    table = model.devices
    devices = list(zip(table.names, table.kinds, strict=True))
    config = ProjectorConfig()
    for name, vectors, header, records in (
        (PROGRAMS, programs, ("launch", "suite", "family"), launches),
        (DEVICES, np.log10(table.vectors), ("device", "kind"), devices),
    ):
        _write_vectors(folder / f"{name}.tsv", vectors)
        _write_table(folder / f"{name}.metadata.tsv", [header, *records])
        config.embeddings.add(
            tensor_name=name,
            tensor_path=f"{name}.tsv",
            metadata_path=f"{name}.metadata.tsv",
            tensor_shape=vectors.shape,
        )
    with whole_file(folder / _CONFIG_FILE) as temporary:  # last: what it names is there
        temporary.write_text(text_format.MessageToString(config), encoding="utf-8")


def _write_vectors(path: Path, vectors: NDArray[np.float64]) -> None:
    with whole_file(path) as temporary:
        np.savetxt(temporary, vectors, fmt="%.5g", delimiter="\t")


def _write_table(path: Path, records: Iterable[Sequence[str]]) -> None:
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for record in records:
            file.write("\t".join(" ".join(cell.split()) for cell in record) + "\n")
