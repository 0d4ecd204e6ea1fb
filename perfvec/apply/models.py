"""Files of trained models: where they are, each read once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from perfvec.errors import ModelError

if TYPE_CHECKING:
    from perfvec.model.weights import TrainedModel

SHIPPED_MODEL = Path(__file__).resolve().parent.parent / "weights" / "default.safetensors"


def model_path(path: str | Path | None = None) -> Path:
    """The file of the model: the given one, or the shipped one.

    Raises:
        ModelError: It does not exist.
    """
    chosen = SHIPPED_MODEL if path is None else Path(path)
    if chosen.is_file():
        return chosen
    what = "this installation has no trained model" if path is None else "there is no model file"
    raise ModelError(
        f"{what} at {chosen}; give one with --model PATH (model=PATH in Python), install a release that ships one, or "
        "train one with perfvec train --config experiments/foundation/config.yaml"
    )


def load_model(path: str | Path | None = None) -> TrainedModel:
    """Read a model, once for each file.

    Args:
        path: The file; the shipped model where it is None.

    Raises:
        ModelError: The file does not exist.
        FormatError: It is damaged, of another kind or version.
    """
    chosen = model_path(path).resolve()
    return _load_model(chosen, chosen.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _load_model(path: Path, changed_ns: int) -> TrainedModel:  # noqa: ARG001  (a changed file is another model)
    from perfvec.model.weights import TrainedModel

    return TrainedModel.load(path)
