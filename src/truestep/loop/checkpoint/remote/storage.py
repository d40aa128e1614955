"""Files below a URL of fsspec."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from truestep.errors import BadSettings, PackageMissing


def is_url(path: object) -> bool:
    """Return True for a URL such as "s3://bucket/run".

    Example:
        >>> is_url("s3://bucket/run"), is_url("runs/lab"), is_url(Path("runs/lab"))
        (True, False, False)
    """
    return isinstance(path, str) and "://" in path


class Storage:
    """Files below a URL. Errors of its methods are those of the storage.

    Args:
        url: for example "s3://bucket/run"; the bucket must exist.

    Raises:
        PackageMissing: fsspec or its package for this kind of storage is not installed.
        BadSettings: the URL is of no known kind.

    Example:
        >>> storage = Storage("memory://of-an-example")
        >>> storage.write("a/b.txt", b"text")
        >>> storage.files("a"), storage.read("a/b.txt"), storage.read("a/c.txt")
        ({'b.txt': 4}, b'text', None)
        >>> storage.remove_folder("a")
        >>> storage.files("")
        {}
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]
        except ImportError:
            raise PackageMissing(
                f"{url} needs fsspec, which is not installed",
                expected=f"expected it in the environment of {sys.executable}",
                remedy="install it with `pip install 'truestep[remote]'`",
            ) from None
        kind = url.partition("://")[0]
        options = {"auto_mkdir": True} if kind in ("file", "local") else {}
        try:
            self._system, root = url_to_fs(url, **options)
        except ImportError as error:
            raise PackageMissing(
                f"{url} needs a package that is not installed: {error}",
                expected=f"expected it in the environment of {sys.executable}",
                remedy="install the package that fsspec names for this storage, such as s3fs or gcsfs",
            ) from error
        except ValueError as error:
            raise BadSettings(
                f"{url} is not the URL of a storage: {error}",
                expected="expected a URL that fsspec knows, such as s3://bucket/run",
                remedy="correct the part before ://",
            ) from error
        self._root: str = str(root).rstrip("/")

    @property
    def path(self) -> Path | None:
        """The folder of a `file://` URL; None elsewhere."""
        kinds = self._system.protocol
        is_local = "file" in ([kinds] if isinstance(kinds, str) else kinds)
        return Path(self._root).resolve() if is_local else None

    def files(self, folder: str) -> dict[str, int]:
        """Return the size of each file below a folder, in bytes, by its path in there; {} if the folder is missing."""
        place = self._at(folder)
        self._system.invalidate_cache()
        try:
            found: dict[str, Any] = self._system.find(place, detail=True)
        except FileNotFoundError:
            return {}
        start = len(place.rstrip("/")) + 1
        return {path[start:]: int(entry["size"] or 0) for path, entry in found.items() if len(path) >= start}

    def has(self, name: str) -> bool:
        """Return True if there is such a file."""
        self._system.invalidate_cache()
        return bool(self._system.isfile(self._at(name)))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        self._system.invalidate_cache()
        try:
            content: bytes = self._system.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, replacing an older one."""
        with tempfile.TemporaryDirectory(prefix="truestep-") as folder:
            path = Path(folder) / "content"
            path.write_bytes(content)
            self.upload(path, name)

    def upload(self, path: Path, name: str) -> None:
        """Copy a file from the disk, replacing an older one."""
        self._system.put_file(str(path), self._at(name))

    def download(self, name: str, path: Path) -> None:
        """Copy a file to the disk."""
        self._system.get_file(self._at(name), str(path))

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._system.rm_file(self._at(name))

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all files in it."""
        self._system.invalidate_cache()
        self._system.rm(self._at(name), recursive=True)

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
