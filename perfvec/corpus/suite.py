"""Kernel suites: folders of OpenCL C with a suite.toml that says how each kernel is launched.

    [suite]
    name = "dense"
    title = "Dense linear algebra"

    [[kernel]]
    name = "gemm_tiled"                 # the kernel function
    file = "gemm.cl"
    family = "gemm"                     # variants of one algorithm share it; splits never cut a family
    variants = [{ TILE = 8 }, { TILE = 16 }]     # build options -DTILE=..., one set a variant
    args = ["buffer:float32:M*K:uniform(-1,1)", "buffer:float32:K*N", "buffer:float32:M*N:constant(0)", "int32:K"]
    global = ["round_up(N, TILE)", "round_up(M, TILE)"]
    local = ["TILE", "TILE"]
    is_size_tied = true                 # false where the work does not follow from the global size
    launches = [{ M = 256, N = 256, K = 256 }, { M = 512, N = 512, K = 64 }]

Every variant is combined with every launch. Counts, sizes, values and initialiser parameters are expressions over
the names of the variant and of the launch (`perfvec.corpus.expressions`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from perfvec.arguments import parse_argument
from perfvec.content import content_folder
from perfvec.corpus.expressions import evaluate
from perfvec.errors import ConfigError, LaunchError
from perfvec.launch import Launch

_KERNEL_KEYS = frozenset(
    ("name", "file", "family", "variants", "args", "global", "local", "launches", "is_size_tied", "options")
)
_REQUIRED = ("name", "file", "family", "args", "global", "local", "launches")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteLaunch:
    """A launch with its place in the corpus."""

    suite: str
    kernel: str
    family: str
    variant: str
    parameters: str
    is_size_tied: bool
    launch: Launch

    @property
    def name(self) -> str:
        """`suite/kernel/variant/parameters`, unique in the corpus."""
        return f"{self.suite}/{self.kernel}/{self.variant or '-'}/{self.parameters}"


def load_suites(folder: Path | None = None) -> list[SuiteLaunch]:
    """Read every suite below a folder; the package's own `traces/` unless told.

    Raises:
        ConfigError: A suite file is malformed; the message names the suite, the kernel and the field.
    """
    root = content_folder("traces") if folder is None else folder
    launches = [entry for path in sorted(root.glob("*/suite.toml")) for entry in load_suite(path)]
    if not launches:
        raise ConfigError(f"no */suite.toml with kernels below {root}")
    return launches


def load_suite(path: Path) -> list[SuiteLaunch]:
    """Read one suite.toml and make all its launches.

    Raises:
        ConfigError: The file is malformed.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read suite {path}: {error}") from error
    try:
        suite = str(content["suite"]["name"])
        kernels = content["kernel"]
    except (KeyError, TypeError) as error:
        raise ConfigError(f"suite {path} lacks {error}; it needs [suite] with a name and [[kernel]] entries") from error
    entries = [entry for kernel in kernels for entry in _kernel_launches(path, suite, kernel)]
    names = [entry.name for entry in entries]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"suite {path} has the same launch twice: {sorted(repeated)[0]}")
    return entries


def _kernel_launches(path: Path, suite: str, kernel: Mapping[str, object]) -> Iterator[SuiteLaunch]:
    name = str(kernel.get("name", "?"))
    if missing := [key for key in _REQUIRED if key not in kernel]:
        raise ConfigError(f"suite {path}, kernel {name!r} lacks {', '.join(missing)}")
    if unknown := set(kernel) - _KERNEL_KEYS:
        raise ConfigError(f"suite {path}, kernel {name!r} has unknown {', '.join(unknown)}; allowed: {_KERNEL_KEYS}")
    source_path = path.parent / str(kernel["file"])
    try:
        source = source_path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"suite {path}, kernel {name!r}: cannot read {source_path}: {error}") from error
    for variant in kernel.get("variants", [{}]):  # pyright: ignore[reportGeneralTypeIssues]
        for parameters in kernel["launches"]:  # pyright: ignore[reportGeneralTypeIssues]
            try:
                launch = _launch(source, source_path.name, kernel, {**variant, **parameters}, variant)
            except (ConfigError, LaunchError) as error:
                raise ConfigError(f"suite {path}, kernel {name!r}, launch {parameters}: {error}") from error
            yield SuiteLaunch(
                suite=suite,
                kernel=name,
                family=str(kernel["family"]),
                variant=_label(variant),
                parameters=_label(parameters),
                is_size_tied=bool(kernel.get("is_size_tied", True)),
                launch=launch,
            )


def _launch(
    source: str,
    source_name: str,
    kernel: Mapping[str, object],
    names: Mapping[str, float],
    variant: Mapping[str, float],
) -> Launch:
    options = [f"-D{key}={value}" for key, value in variant.items()]
    return Launch(
        source=source,
        source_name=source_name,
        kernel_name=str(kernel["name"]),
        args=tuple(
            parse_argument(expand_argument(text, names), position=i)
            for i, text in enumerate(kernel["args"])  # pyright: ignore[reportArgumentType]
        ),
        global_size=_sizes(kernel["global"], names),
        local_size=_sizes(kernel["local"], names),
        build_options=(*map(str, kernel.get("options", ())), *options),  # pyright: ignore[reportArgumentType]
    )


def _sizes(expressions: object, names: Mapping[str, float]) -> tuple[int, ...]:
    if not isinstance(expressions, list):
        raise ConfigError(f"a size is a list of expressions, found {expressions!r}")
    return tuple(int(evaluate(text, names)) for text in expressions)


def expand_argument(text: str, names: Mapping[str, float]) -> str:
    """Turn an argument with expressions into its plain string form.

    Args:
        text: Such as `buffer:float32:M*K:uniform(0,N)~3`.
        names: Values of the names.
    """
    kind, _, rest = text.partition(":")
    if kind not in ("buffer", "local"):
        values = ",".join(_number(part, names) for part in _split(rest))
        return f"{kind}:{values}"
    dtype, _, tail = rest.partition(":")
    count, _, initialiser = tail.partition(":")
    expanded = f"{kind}:{dtype}:{int(evaluate(count, names))}"
    if not initialiser:
        return expanded
    match = re.fullmatch(r"([a-z_]+)(?:\((.*)\))?(~\d+)?", initialiser.strip())
    if match is None:
        raise ConfigError(f"cannot read initialiser {initialiser!r} of argument {text!r}")
    parameters = ",".join(_number(part, names) for part in _split(match[2] or ""))
    return f"{expanded}:{match[1]}({parameters}){match[3] or ''}"


def _number(text: str, names: Mapping[str, float]) -> str:
    value = evaluate(text, names)
    return str(int(value)) if float(value).is_integer() else f"{value:.17g}"


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _label(names: Mapping[str, float]) -> str:
    return ",".join(f"{key}={value}" for key, value in names.items())
