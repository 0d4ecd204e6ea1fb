"""The files of design spaces and of their splits; their form is in `perfvec.arch.space`."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from perfvec.arch.device import fact_names, user_folder
from perfvec.arch.space import (
    COMPARISONS,
    DISTRIBUTIONS,
    TIMING,
    Constraint,
    DesignSpace,
    Parameter,
    SampledDevice,
    sample_digest,
)
from perfvec.arch.timing.config import field_ranges
from perfvec.content import content_folder
from perfvec.errors import DeviceError

_KEYS = ("name", "distribution", "low", "high", "values", "weights", "times", "over", "multiple_of")
_CONSTRAINT = re.compile(rf"\s*(\S+)\s*({'|'.join(COMPARISONS)})\s*(?:([-+.\deE]+)\s*\*\s*)?(\S+)\s*")


def read_space(path: str | Path) -> DesignSpace:
    """Read a design space's file.

    Raises:
        DeviceError: It cannot be read, a key is missing, unknown or of the wrong type, a parameter is no fact, a range
            is not allowed, or facts are missing; the message names the field and what is allowed.
    """
    path = Path(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DeviceError(f"cannot read design space {path}: {error}") from error
    try:
        space = _space(tables)
    except DeviceError as error:
        raise DeviceError(f"design space {path}: {error}") from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DeviceError(
            f"design space {path} is malformed: {error!r}; see perfvec/arch/space.py for its form"
        ) from error
    if space.name != path.stem:
        raise DeviceError(f"design space {path} describes {space.name!r}; name the file {space.name}.toml")
    return space


def _space(tables: Mapping[str, Any]) -> DesignSpace:
    _check_keys(tables, ("space", "parameter"), "the file")
    head = tables["space"]
    _check_keys(head, ("name", "title", "base", "constraints"), "[space]")
    parameters: list[Parameter] = []
    for table in tables["parameter"]:
        parameters.append(_parameter(table, [item.name for item in parameters]))
    names = [item.name for item in parameters]
    base = str(head.get("base", ""))
    if not base and (missing := [path for path in fact_names() if path not in names]):
        raise DeviceError(
            f"no parameter and no base for {', '.join(missing)}; add parameters, or base = DEVICE to [space]"
        )
    constraints = tuple(_constraint(text, names) for text in head.get("constraints", ()))
    return DesignSpace(
        name=str(head["name"]),
        title=str(head["title"]),
        base=base,
        parameters=tuple(parameters),
        constraints=constraints,
    )


def _parameter(table: Mapping[str, Any], above: Sequence[str]) -> Parameter:
    name = str(table["name"])
    _check_keys(table, _KEYS, f"parameter {name}")
    known = {*fact_names(), *(TIMING + field for field in field_ranges())}
    if "." in name and name not in known:
        raise DeviceError(f"parameter {name!r} is no fact; allowed: {_near(name, known)}, or a helper without a dot")
    if name in above:
        raise DeviceError(f"parameter {name} stands there twice; leave one out")
    distribution = str(table.get("distribution", "product"))
    for key in DISTRIBUTIONS.get(distribution, ()):
        if key not in table:
            raise DeviceError(f"parameter {name}: distribution {distribution!r} needs {key}")
    for key in ("times", "over"):
        for factor in table.get(key, ()):
            if isinstance(factor, str) and factor not in above:
                raise DeviceError(f"parameter {name}: {key} has {factor!r}; allowed are parameters above it")
    parameter = Parameter(
        name=name,
        distribution=distribution,
        low=float(table.get("low", 1.0)),
        high=float(table.get("high", 1.0)),
        values=tuple(table.get("values", ())),
        weights=tuple(map(float, table.get("weights", ()))),
        times=tuple(table.get("times", ())),
        over=tuple(table.get("over", ())),
        multiple_of=float(table.get("multiple_of", 0)),
    )
    if name.startswith(TIMING):
        _check_timing_range(parameter)
    return parameter


def _check_timing_range(parameter: Parameter) -> None:
    """Refuse a range of a timing field that reaches beyond what the field allows."""
    allowed = field_ranges()[parameter.name.removeprefix(TIMING)]
    if parameter.times or parameter.over:
        return
    values = parameter.values or (parameter.low, parameter.high)
    for value in values:
        if value not in allowed.allowed if allowed.allowed else not allowed.low <= float(value) <= allowed.high:
            text = ", ".join(map(str, allowed.allowed)) or f"{allowed.low:g} to {allowed.high:g}"
            raise DeviceError(f"parameter {parameter.name}: {value!r} in its range; allowed: {text}")


def _constraint(text: str, names: Sequence[str]) -> Constraint:
    match = _CONSTRAINT.fullmatch(text)
    if match is None:
        raise DeviceError(f"cannot read constraint {text!r}; write NAME <= NUMBER * NAME, or >=")
    left, comparison, factor, right = match.groups()
    for name in (left, right):
        if name not in names and not (name is right and _is_number(name)):
            raise DeviceError(f"constraint {text!r}: no parameter {name!r}; allowed: {_near(name, set(names))}")
    return Constraint(text=text, left=left, comparison=comparison, factor=float(factor or 1), right=right)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _check_keys(table: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise DeviceError(f"{where} has the unknown key {key!r}; allowed: {_near(key, set(allowed))}")


def _near(name: str, known: set[str]) -> str:
    return ", ".join(difflib.get_close_matches(name, sorted(known), n=4, cutoff=0.4) or sorted(known))


# ---- the shelf --------------------------------------------------------------------------------------------------


def load_spaces(folder: str | Path | None = None) -> dict[str, DesignSpace]:
    """Read all design spaces, by name.

    Args:
        folder: Read this folder alone; without it, the shipped ones and then those in `spaces` of the user's folder.

    Raises:
        DeviceError: A file is wrong, see `read_space`.
    """
    folders = [content_folder("archs") / "spaces", user_folder() / "spaces"] if folder is None else [Path(folder)]
    spaces = [read_space(path) for place in folders for path in sorted(place.glob("*.toml"))]
    return {space.name: space for space in spaces}


def find_space(name: str, spaces: Mapping[str, DesignSpace] | None = None) -> DesignSpace:
    """The design space of a name.

    Raises:
        DeviceError: There is none; the message has those that there are.
    """
    known = load_spaces() if spaces is None else spaces
    if name not in known:
        raise DeviceError(f"no design space {name!r}; allowed: {', '.join(sorted(known))}")
    return known[name]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSplit:
    """Devices of a space for training and for tests, fixed in `archs/spaces/splits/NAME.toml`.

    Attributes:
        training: Devices to learn from.
        held_out: Devices that nothing is tuned on.
    """

    training: tuple[SampledDevice, ...]
    held_out: tuple[SampledDevice, ...]


def load_space_split(space: DesignSpace, folder: str | Path | None = None) -> SpaceSplit:
    """The split of a space's sample.

    Args:
        space: The space.
        folder: Where splits are; the shipped folder where it is None.

    Raises:
        DeviceError: There is no split of the space, or the space is no longer the one that was split.
    """
    place = content_folder("archs") / "spaces" / "splits" if folder is None else Path(folder)
    path = place / f"{space.name}.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        devices = space.sample(int(table["num_devices"]), seed=int(table["seed"]))
        held_out, digest = frozenset(map(int, table["held_out"])), str(table["digest"])
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise DeviceError(f"cannot read the split {path}: {error!r}; make it with experiments.devices.split") from error
    if sample_digest(devices) != digest:
        raise DeviceError(
            f"{path} is about other devices than space {space.name!r} gives now ({digest}, {sample_digest(devices)}); "
            "the space was changed: give it another name, or split it again with experiments.devices.split"
        )
    return SpaceSplit(
        training=tuple(item for item in devices if item.number not in held_out),
        held_out=tuple(item for item in devices if item.number in held_out),
    )
