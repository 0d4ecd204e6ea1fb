"""A trained model and its file (safetensors; docs/format.md, perfvec-model)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import torch

from perfvec.errors import ConfigError, FormatError, ModelError
from perfvec.files import whole_file
from perfvec.model.config import TrainingConfig, training_config
from perfvec.model.devices import DeviceBank, DeviceTable, check_seconds_per_unit
from perfvec.model.launch_input import FeatureSchema
from perfvec.model.posterior import DeviceBelief, table_prior
from perfvec.model.program_encoder import ProgramEncoder
from perfvec.model.vectors import Contributions, contributions, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.model.devices import DeviceKind
    from perfvec.model.launch_input import LaunchInput

FORMAT = "perfvec-model"
FORMAT_VERSION = 3
_SECONDS = "seconds_per_unit"
# Data sheets are kept in single precision: two that differ by less are one.
_SAME_SECONDS, _NO_SECONDS = 1e-6, 1e-30
# Kept in half precision, hundreds of thousands of logarithms and weights: a device's price of a coordinate stays within
# a thousandth or two, and no two are off alike.
_LARGE = ("bank.own_counted", "bank.own_learned", "bank.mix_map", "encoder.straight_gates.weight")
# How far a device departs from its simulated twin, in log, as a whole and in each coordinate. Chosen on validation
# families on the H200: the wider, the more do five or ten launches lead away from a start that is near already.
TWIN_SPREAD = 0.2


@final
@dataclass(frozen=True, kw_only=True)  # no slots, for what is worked out once
class TrainedModel:
    """The networks, the devices and where they come from.

    Attributes:
        encoder: Makes program vectors.
        bank: Makes device vectors.
        schema: What its launches must look like.
        config: How it was trained.
        device_names: Devices that it was trained on.
        device_kinds: `real` or `simulated`, one a device.
        seconds_per_unit: Their datasheets; float64 `(devices, NUM_RESOURCES)`.
        families: Kernel families it was trained on.
        validation_families: Families that only decided when to stop.
        suites: Suites that those launches come from.
        code_version: Release that trained it.
        further_twins: Simulated devices whose vectors were fitted after the training; the file does not keep them.
    """

    encoder: ProgramEncoder
    bank: DeviceBank
    schema: FeatureSchema
    config: TrainingConfig
    device_names: tuple[str, ...]
    device_kinds: tuple[DeviceKind, ...]
    seconds_per_unit: NDArray[np.float64]
    families: tuple[str, ...]
    validation_families: tuple[str, ...]
    suites: tuple[str, ...]
    code_version: str
    further_twins: DeviceTable | None = None

    def __post_init__(self) -> None:
        if len(self.device_kinds) != len(self.device_names) or not {*self.device_kinds} <= {"real", "simulated"}:
            raise ModelError(
                f"device_kinds {self.device_kinds} of {len(self.device_names)} devices; each is 'real' or 'simulated'"
            )
        self.encoder.eval().requires_grad_(False)
        self.bank.eval().requires_grad_(False)

    @cached_property
    def devices(self) -> DeviceTable:
        """The vectors of the devices it was trained on."""
        return DeviceTable(
            names=self.device_names,
            kinds=self.device_kinds,
            vectors=self.bank().cpu().numpy(),
            seconds_per_unit=self.seconds_per_unit,
        )

    @cached_property
    def datasheet_devices(self) -> DeviceTable:
        """The same devices as the model would believe them to be had they never been measured."""
        vectors = self.bank.without_own().cpu().numpy()
        for row in self.real_devices():
            twin = self.simulated_twin(self.seconds_per_unit[row])
            if twin is not None:
                vectors[row] = twin
        return DeviceTable(
            names=self.device_names,
            kinds=("datasheet",) * len(self.device_names),
            vectors=vectors,
            seconds_per_unit=self.seconds_per_unit,
        )

    def simulated_twin(self, seconds_per_unit: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The vector of the simulated device that has this datasheet, `(D,)`; None where there is none.

        Those of `further_twins` go before.
        """
        for table in (self.further_twins, self.devices):
            if table is not None:
                close_MK = np.isclose(table.seconds_per_unit, seconds_per_unit, rtol=_SAME_SECONDS, atol=_NO_SECONDS)
                is_same = close_MK.all(axis=1)
                twins = np.flatnonzero(is_same & (np.array(table.kinds) == "simulated"))
                if len(twins):
                    return table.vectors[twins[0]]
        return None

    def device_from_datasheet(self, seconds_per_unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """The vector of a device that was never measured: from times of the timing model, where the model has them.

        Args:
            seconds_per_unit: Its datasheet; float64 `(NUM_RESOURCES,)`.

        Returns:
            Float64 `(D,)`, positive.

        Raises:
            ModelError: The datasheet has the wrong shape or a value that is negative or not finite.
        """
        return self._start(seconds_per_unit)[0]

    def _start(self, seconds_per_unit: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
        """`device_from_datasheet`, and whether that is a simulated twin."""
        check_seconds_per_unit(seconds_per_unit[None], ("from the datasheet",))
        twin = self.simulated_twin(seconds_per_unit)
        if twin is not None:
            return twin, True
        return self.bank.from_datasheet(seconds_per_unit[None])[0].cpu().numpy(), False

    def device_prior(
        self, seconds_per_unit: NDArray[np.float64], *, common: float, own: float, but: str = ""
    ) -> DeviceBelief:
        """What is believed of a device before it is measured; `posterior.posterior` takes it from there.

        Args:
            seconds_per_unit: Its datasheet; float64 `(NUM_RESOURCES,)`.
            common: Standard deviation, in log, of a factor on all coordinates (see `posterior.table_prior`).
            own: The same of a coordinate by itself. A device with a simulated twin departs less, `TWIN_SPREAD`.
            but: A device whose own row is not to be looked at.

        Raises:
            ModelError: The datasheet has the wrong shape or a value that is negative or not finite.
        """
        start, has_twin = self._start(seconds_per_unit)
        if has_twin:
            common, own = min(common, TWIN_SPREAD), min(own, TWIN_SPREAD)
        # Only those that start from the same, a simulated twin or a datasheet: what the datasheet of a CPU lacks says
        # nothing of a GPU that the timing model knows.
        others = [row for row in self.real_devices(but=but) if (row in self._real_with_twin) == has_twin]
        vectors, starts = self.devices.vectors[others], self.datasheet_devices.vectors[others]
        return table_prior(start, vectors, starts, common=common, own=own)

    @cached_property
    def _real_with_twin(self) -> frozenset[int]:
        """Rows of the measured devices that have a simulated twin."""
        return frozenset(
            row for row in self.real_devices() if self.simulated_twin(self.seconds_per_unit[row]) is not None
        )

    def real_devices(self, *, but: str = "") -> list[int]:
        """Rows of the devices whose times were measured: only these show how far a datasheet is off.

        Args:
            but: One to leave out.
        """
        known = zip(self.device_names, self.device_kinds, strict=True)
        return [row for row, (name, kind) in enumerate(known) if kind == "real" and name != but]

    def encode(self, launches: Sequence[LaunchInput]) -> NDArray[np.float64]:
        """Program vectors of launches; float64 `(launches, D)`.

        Raises:
            ModelError: A launch does not fit the schema that the model was trained on.
        """
        for launch in launches:
            self.schema.require(launch.schema, what=launch.name)
        return encode(self.encoder, launches)

    def contributions(self, launch: LaunchInput) -> Contributions:
        """What each instruction adds to the launch's program vector.

        Raises:
            ModelError: The launch does not fit the schema that the model was trained on.
        """
        self.schema.require(launch.schema, what=launch.name)
        return contributions(self.encoder, launch)

    def save(self, path: str | Path) -> None:
        """Write the model, whole or not at all.

        Raises:
            FormatError: The folder does not exist.
        """
        from safetensors.torch import save

        tensors = {f"encoder.{name}": tensor for name, tensor in self.encoder.state_dict().items()}
        tensors |= {f"bank.{name}": tensor for name, tensor in self.bank.state_dict().items()}
        tensors = {name: tensor.half() if name in _LARGE else tensor for name, tensor in tensors.items()}
        tensors[_SECONDS] = torch.from_numpy(self.seconds_per_unit.astype(np.float32))
        metadata = {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "code_version": self.code_version,
            "config": json.dumps(asdict(self.config)),
            "schema": json.dumps(asdict(self.schema)),
            **{name: json.dumps(getattr(self, name)) for name in _NAME_LISTS},
        }
        with whole_file(path) as temporary:
            temporary.write_bytes(
                save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata)
            )

    @classmethod
    def load(cls, path: str | Path) -> TrainedModel:
        """Read a model back.

        Raises:
            FormatError: The file is missing, damaged, of another kind or version.
        """
        import dacite

        tensors, metadata = _read(path)
        try:
            schema = dacite.from_dict(
                FeatureSchema, json.loads(metadata["schema"]), dacite.Config(cast=[tuple], strict=True)
            )
            config = training_config(json.loads(metadata["config"]), where=str(path))
            names = {name: tuple(json.loads(metadata[name])) for name in _NAME_LISTS}
            seconds_per_unit = tensors[_SECONDS].double().numpy()
            check_seconds_per_unit(seconds_per_unit, names["device_names"])
            encoder = ProgramEncoder(schema, config.model)
            bank = DeviceBank(seconds_per_unit, encoder.layout)
            pairs = (encoder.slower.clone(), encoder.faster.clone(), encoder.scale.clone())
            encoder.load_state_dict(_part(tensors, "encoder."))
            if not all(map(torch.equal, pairs, (encoder.slower, encoder.faster, encoder.scale))):
                raise FormatError(
                    f"{path} was trained with other pairs of archetypes than this release's archs/excess.json; train "
                    "the model again"
                )
            bank.load_state_dict(_part(tensors, "bank."))
            return cls(
                encoder=encoder,
                bank=bank,
                schema=schema,
                config=config,
                seconds_per_unit=seconds_per_unit,
                code_version=metadata["code_version"],
                further_twins=None,
                **names,
            )
        except (KeyError, ValueError, TypeError, RuntimeError, dacite.DaciteError, ConfigError, ModelError) as error:
            raise FormatError(f"{path} is damaged: {error}; train the model again") from error


_NAME_LISTS = ("device_names", "device_kinds", "families", "validation_families", "suites")


def _read(path: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FormatError(f"{path} does not exist or is not a file")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise FormatError(f"{path} holds {metadata.get('format')!r}, not {FORMAT!r}; give a model file")
            if metadata.get("format_version") != str(FORMAT_VERSION):
                raise FormatError(
                    f"{path} has {FORMAT} format version {metadata.get('format_version')}; this release reads "
                    f"{FORMAT_VERSION}. Upgrade perfvec, or train the model again with this release."
                )
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise FormatError(f"{path} is not a readable safetensors file ({error}); write it again") from error


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
