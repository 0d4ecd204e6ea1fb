"""OpenCL sources that others wrote: from folders, tables and installed packages, read where they lie, never copied."""

from __future__ import annotations

import ast
import csv
import gzip
import importlib.util
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from perfvec.errors import ConfigError

SUFFIXES = (".cl", ".ocl", ".opencl")
TABLE_SUFFIXES = (".csv", ".csv.gz")
# Python packages that carry OpenCL kernels, by import name.
PACKAGES = (
    "pyopencl", "gputools", "silx", "pyFAI", "pyclesperanto", "pyclesperanto_prototype", "pyclblast", "reikna",
    "pymatting", "loopy", "boxtree", "sumpy", "meshmode", "kernel_tuner", "netcl", "nengo_ocl", "dpivsoft",
    "opencl_fdfd", "oclrfc",
)  # fmt: skip
_KERNEL = re.compile(r"\b(?:__)?kernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\b", re.DOTALL)
_MOST_FIELD = 1 << 26  # characters of a field of a table


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideSource:
    """A source that somebody else wrote.

    Attributes:
        name: Where it is from: a path below the folder or package, or the name in a table's row.
        text: OpenCL C.
        build_options: What it needs to find files beside it.
    """

    name: str
    text: str
    build_options: tuple[str, ...] = ()


def load_sources(path: str | Path) -> list[OutsideSource]:
    """Read a folder, a file of OpenCL C, or a table (CSV, gzip-compressed or not) with a column of sources.

    Raises:
        ConfigError: There is nothing at the path, or it holds no sources.
    """
    path = Path(path)
    if path.is_dir():
        found = _from_folder(path, path)
    elif not path.is_file():
        raise ConfigError(f"{path} is no file and no folder; give OpenCL C, a folder of it or a CSV table")
    elif path.name.endswith(TABLE_SUFFIXES):
        found = _from_table(path)
    else:
        found = [OutsideSource(name=path.name, text=_text_of(path), build_options=_beside(path))]
    if not found:
        raise ConfigError(f"{path} holds no OpenCL sources; files of them end in {', '.join(SUFFIXES)}")
    return found


def load_packages(names: Iterable[str] = PACKAGES) -> tuple[list[OutsideSource], tuple[str, ...]]:
    """Read the kernels inside installed Python packages: files, and texts in their modules.

    Args:
        names: Import names; the packages are found, not imported.

    Returns:
        The sources, and the names of the packages that are not installed.
    """
    sources: list[OutsideSource] = []
    missing = []
    for name in names:
        folder = _package_folder(name)
        if folder is None:
            missing.append(name)
            continue
        sources += _from_folder(folder, folder.parent)
        for module in sorted(folder.rglob("*.py")):
            sources += _from_module(module, str(module.relative_to(folder.parent)))
    return sources, tuple(missing)


def package_folders(names: Iterable[str] = PACKAGES) -> tuple[Path, ...]:
    """Folders of those packages that are installed, where headers may lie."""
    return tuple(folder for name in names if (folder := _package_folder(name)) is not None)


def _package_folder(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def _from_folder(folder: Path, root: Path) -> list[OutsideSource]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return [
        OutsideSource(name=str(path.relative_to(root)), text=_text_of(path), build_options=_beside(path))
        for path in paths
    ]


def _beside(path: Path) -> tuple[str, ...]:
    """Options with which a file finds those beside it; a path with spaces cannot be an option."""
    folder = str(path.parent.resolve())
    return () if " " in folder else (f"-I{folder}",)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def _from_module(path: Path, name: str) -> Iterator[OutsideSource]:
    """Texts of kernels in a Python module."""
    text = _text_of(path)
    if not _KERNEL.search(text):
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    within = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        found = "" if id(node) in within else _text_of_node(node)
        if _KERNEL.search(found):
            yield OutsideSource(name=f"{name}:{getattr(node, 'lineno', 0)}", text=found)


def _text_of_node(node: ast.AST) -> str:
    """A text's characters; of one that Python formats, `{name}` stays as a template's `${name}`."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if not isinstance(node, ast.JoinedStr):
        return ""
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            parts.append(f"${{{ast.unparse(part.value)}}}")
        else:
            parts.append(_text_of_node(part))
    return "".join(parts)


def _from_table(path: Path) -> list[OutsideSource]:
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        rows = _rows(raw.decode("utf-8"))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"cannot read the table {path}: {error}") from error
    columns = list(rows[0]) if rows else []
    with_kernels = [column for column in columns if any(_KERNEL.search(row[column] or "") for row in rows)]
    if not with_kernels:
        raise ConfigError(
            f"table {path} has no column with OpenCL kernels; its columns are: {', '.join(columns) or 'none'}"
        )
    column = with_kernels[0]
    names = _name_column(columns, column, rows)
    return [
        OutsideSource(name=row[names] if names else f"row {number}", text=row[column])
        for number, row in enumerate(rows, 1)
        if row[column]
    ]


def _rows(text: str) -> list[dict[str, str]]:
    previous = csv.field_size_limit(_MOST_FIELD)
    try:
        return list(csv.DictReader(io.StringIO(text, newline="")))
    finally:
        csv.field_size_limit(previous)


def _name_column(columns: Sequence[str], sources: str, rows: Sequence[dict[str, str]]) -> str:
    """The first column whose values are all different; "" if there is none."""
    others = (column for column in columns if column != sources)
    return next((c for c in others if all(row[c] for row in rows) and len({row[c] for row in rows}) == len(rows)), "")
