"""Decoded images in one memory-mapped file: pixels, labels, a description in JSON, its length, a magic number."""

from __future__ import annotations

import hashlib
import json
import math
import uuid
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from truestep.data.pictures.files import pixels_of
from truestep.errors import BadData

_MARK = b"TSIMAGE1"
_CHECKED = 2**31
"""Largest file, in bytes, with a checksum that is verified; reading 2 GiB takes a second."""
_TAIL = len(_MARK) + 8
_AHEAD = 256


@dataclass(frozen=True, slots=True)
class PackOrigin:
    """The sources and settings of a packed file. If they change, the file is written again."""

    files: str
    """Hash of the names, sizes and modification times of the files."""
    classes: tuple[str, ...]
    channels: int
    size: tuple[int, int] | None


def origin(
    folder: Path, files: Sequence[Path], classes: Sequence[str], channels: int, size: tuple[int, int] | None
) -> PackOrigin:
    """Return the origin of a packed file of these images."""
    hashed = hashlib.sha256()
    for path in files:
        stat = path.stat()
        hashed.update(f"{path.relative_to(folder).as_posix()}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return PackOrigin(hashed.hexdigest(), tuple(classes), channels, size)


def opened(
    path: Path, files: Sequence[Path], labels: Sequence[int], made_of: PackOrigin
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the images of a packed file (uint8, mapped) and the labels (int64); write the file if it is missing.

    Raises:
        BadData: as `write`, or the written file cannot be read back.
    """
    held = read(path, made_of)
    if held is None:
        write(path, files, labels, made_of)
        held = read(path, made_of)
    if held is None:
        raise BadData(
            "the packed file cannot be read back",
            path=path,
            remedy="pack to another disk: this one lost data",
        )
    return held


def read(path: Path, wanted: PackOrigin) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the images of a packed file (uint8, mapped) and the labels (int64).

    Returns:
        None if the file does not exist, is not a packed file, or has another origin.

    Raises:
        BadData: the checksum is wrong; files above 2 GiB are not checked.
    """
    try:
        length = path.stat().st_size
        tail = _tail(path)
        if not tail.endswith(_MARK):
            return None
        with path.open("rb") as file:
            size = int.from_bytes(tail[:8], "little")
            file.seek(max(0, length - _TAIL - size))
            held = json.loads(file.read(min(size, length)))
            shape = tuple(held.pop("shape"))
            crc = held.pop("crc32", None)
            whole = math.prod(shape) + 8 * shape[0] + size + _TAIL
            if length != whole or held != json.loads(json.dumps(asdict(wanted))):
                return None
            file.seek(math.prod(shape))
            labels = torch.frombuffer(bytearray(file.read(8 * shape[0])), dtype=torch.int64)
    except (FileNotFoundError, ValueError, KeyError):
        return None
    if crc is not None and length <= _CHECKED and _crc32(path, math.prod(shape) + 8 * shape[0]) != crc:
        raise BadData(
            "the packed file is damaged",
            path=path,
            expected=f"expected the checksum {crc} that it was written with",
            remedy="delete it, so that it is made again from the images, and check the disk",
        )
    pixels = torch.from_file(str(path), shared=False, size=math.prod(shape), dtype=torch.uint8)
    return pixels.view(shape), labels


def _crc32(path: Path, length: int) -> str:
    """Return the checksum of the first bytes of a file."""
    crc = 0
    with path.open("rb") as file:
        while length and (data := file.read(min(length, 2**20))):
            crc = zlib.crc32(data, crc)
            length -= len(data)
    return f"{crc:08x}"


def write(path: Path, files: Sequence[Path], labels: Sequence[int], made_of: PackOrigin) -> None:
    """Decode images and write them to a packed file, which appears whole or not at all.

    Raises:
        BadData: an image cannot be decoded, images have different sizes, or `path` is a file of another kind.
    """
    if path.exists() and not _tail(path).endswith(_MARK):
        raise BadData(
            "pack= names a file of another kind",
            path=path,
            remedy="pass another name, or move the file away",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    # Ranks in containers on several hosts have the same process numbers, and write at the same time.
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}.unfinished")
    shape: torch.Size | None = None
    crc = 0
    try:
        with unfinished.open("wb") as file:
            for place, pixels in zip(files, _decoded(files, made_of), strict=True):
                shape = shape or pixels.shape
                if pixels.shape != shape:
                    raise BadData(
                        f"the image is {_size(pixels.shape)}, but the first one is {_size(shape)}",
                        path=place,
                        expected="expected images of one size in a packed file",
                        remedy="pass size=224 to scale all images to one size",
                    )
                data = pixels.numpy().tobytes()
                crc = zlib.crc32(data, crc)
                file.write(data)
            data = torch.tensor(labels, dtype=torch.int64).numpy().tobytes()
            crc = zlib.crc32(data, crc)
            file.write(data)
            facts = {**asdict(made_of), "shape": [len(files), *(shape or ())], "crc32": f"{crc:08x}"}
            header = json.dumps(facts).encode()
            file.write(header + len(header).to_bytes(8, "little") + _MARK)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _tail(path: Path) -> bytes:
    """Return the last bytes of a file: length of the description and magic number, if it is a packed file."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        return file.read()


def _decoded(files: Sequence[Path], made_of: PackOrigin) -> Iterator[torch.Tensor]:
    """Yield the decoded images. Threads decode a few images ahead: Pillow releases the GIL while it decodes."""
    decode = partial(pixels_of, channels=made_of.channels, size=made_of.size)
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(files), _AHEAD):
            yield from pool.map(decode, files[start : start + _AHEAD])


def _size(shape: torch.Size) -> str:
    return f"{shape[-2]} by {shape[-1]} pixels"
