"""Kernel texts of the CGO'17 device mapping data set, where it lies beside the checkout; never part of the repository.

Its kernels come without arguments, so buffers and sizes are made up here: large buffers, small numbers.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from perfvec.launch import Launch
from tests.opencl import shared_file
from tests.program.launching import make_launch

SOURCES = Path(__file__).resolve().parents[3] / "shared" / "data" / "cgo17_devmap" / "sources.csv.gz"
_KERNEL = re.compile(r"__kernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\s+(\w+)\s*\((.*?)\)\s*\{", re.DOTALL)
_DTYPES = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "long": "int64", "ulong": "uint64", "size_t": "uint64", "float": "float32", "double": "float64",
}  # fmt: skip
_COUNT = 1 << 14


def cgo17_launches() -> dict[str, Launch]:
    """A launch of each kernel whose arguments have plain types. Skips the test where the data set is not there."""
    with gzip.open(shared_file(SOURCES), "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {f"cgo17/{row['src_id']}/{launch.kernel_name}": launch for row in rows for launch in _launches(row["src"])}


def _launches(source: str) -> Iterator[Launch]:
    for match in _KERNEL.finditer(source):
        args = [_argument(text) for text in match[2].split(",")]
        if all(args):
            yield make_launch(source, *map(str, args), kernel_name=match[1])


def _argument(parameter: str) -> str:
    """Such as `buffer:float32:16384`; "" for a parameter of another type."""
    text = re.sub(r"\bunsigned\s+(?=char|short|int|long)", "u", parameter).replace("unsigned", "uint")
    match = re.search(r"\b([a-z_]+?)(\d*)\b\s*(?:const|restrict|volatile|\*|\s)*\w*(?:\[\])?\s*$", _plain(text))
    if match is None or match[1] not in _DTYPES:
        return ""
    dtype = _DTYPES[match[1]]
    element = f"{dtype}x{match[2]}" if match[2] else dtype
    if "*" not in text and "[" not in text:
        return f"{element}:{0.5 if dtype.startswith('float') else 8}"
    if re.search(r"\b(?:__)?local\b", text):
        return f"local:{element}:512"
    return f"buffer:{element}:{_COUNT}:uniform(0,{1 if dtype.startswith('float') else 7})"


def _plain(text: str) -> str:
    return re.sub(r"\b(?:__)?(?:global|local|constant|const|restrict|volatile|private)\b|\brestrict\b", " ", text)
