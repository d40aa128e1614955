"""Find the user's line of a call of torch, cheaply: a dictionary look-up after the first time."""

from __future__ import annotations

import dis
import itertools
import os
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType

from truestep.events import Site
from truestep.seams.patch import UNCOUNTED

_MOST_FRAMES = 6
_LONGEST_CHAIN = 12
_MOST_FILES = 200
_CALLING = {"_wrapped_call_impl", "_call_impl"}


class Sites:
    """Interned places in user code. A user's frame is one outside torch, this package and the standard library.

    Frames of other installed packages (Lightning, Accelerate) are skipped too, unless there is no other frame.
    """

    def __init__(self, torch_folder: str) -> None:
        here = Path(__file__)  # code objects have the path of the import, which can go through a link
        packages = {str(path.parents[2]) for path in (here, here.resolve())}
        self._never = tuple(os.path.join(folder, "") for folder in (torch_folder, *packages))
        paths = sysconfig.get_paths()
        installed = {paths["purelib"], paths["platlib"], paths["stdlib"], paths["platstdlib"]}
        self._library = tuple(os.path.join(folder, "") for folder in installed)
        self._kind: dict[int, int] = {}
        self._codes: list[CodeType] = []
        self._sites: dict[tuple[int, int], Site] = {}
        self._dropped: dict[tuple[int, int], bool] = {}
        self._imported = 0, ""
        """Number of imported modules, and the latest of them, when they were looked at."""
        self._own_files: list[str] = []
        self._met: set[str] = set()
        """Names of the modules that were looked at."""

    def _classify(self, code: CodeType) -> int:
        """Return 0 for a user's code, 1 for an installed library, 2 for torch and this package."""
        path = code.co_filename
        if path.startswith(self._never) or path == UNCOUNTED:
            kind = 2
        elif path.startswith((*self._library, "<frozen")) or _is_package(path):
            kind = 1
        else:
            kind = 0
        self._kind[id(code)] = kind
        self._codes.append(code)
        return kind

    def is_installed(self, path: str) -> bool:
        """Return True if a file belongs to a library or to this package, not to the user's program."""
        return path.startswith((*self._never, *self._library, "<")) or _is_package(path)

    def kind(self, code: CodeType) -> int:
        """Return 0 for a user's code, 1 for that of an installed library, 2 for torch's and ours."""
        kind = self._kind.get(id(code))
        return self._classify(code) if kind is None else kind

    def quick(self, depth: int) -> Site | None:
        """Return the site of the frame at a depth if that is a user's frame, else of the nearest one above it.

        Frames in between are not read, because Python creates frame objects only on demand.
        """
        frame = sys._getframe(depth)
        if self._kind.get(id(frame.f_code)) == 0:
            site = self._sites.get((id(frame.f_code), frame.f_lasti))
            return self._build(frame) if site is None else site
        return self.at(self.frame(depth))

    def frame(self, depth: int) -> FrameType | None:
        """Return the nearest user frame above the caller's caller (``depth`` 1 is the caller of this method)."""
        frame: FrameType | None = sys._getframe(depth)
        kinds = self._kind
        library: FrameType | None = None
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(id(code))
            if kind is None:
                kind = self._classify(code)
            if kind == 0:
                return frame
            if kind == 1 and library is None and "site-packages" in code.co_filename:
                library = frame
            frame = frame.f_back
        return library

    @staticmethod
    def immediate(frame: FrameType | None) -> FrameType | None:
        """Return the frame that made the current call, of any code but torch's module call."""
        while frame is not None and frame.f_code.co_name in _CALLING:
            frame = frame.f_back
        return frame

    def keep(self, code: CodeType) -> None:
        """Keep a code object alive, since its address is used as a key."""
        if id(code) not in self._kind:
            self._classify(code)

    def above(self, frame: FrameType) -> FrameType | None:
        """Return the nearest user frame above another."""
        up = frame.f_back
        while up is not None:
            kind = self._kind.get(id(up.f_code))
            if (self._classify(up.f_code) if kind is None else kind) == 0:
                return up
            up = up.f_back
        return None

    def users(self, frame: FrameType | None) -> list[FrameType]:
        """Return the user's frames from a frame outwards, at most six."""
        found: list[FrameType] = []
        while frame is not None and len(found) < _MOST_FRAMES:
            if self.kind(frame.f_code) == 0:
                found.append(frame)
            frame = frame.f_back
        return found

    def own(self, depth: int) -> FrameType | None:
        """Return the nearest frame above torch and this package if it is a user's, None if it is a library's."""
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            kind = self._kind.get(id(frame.f_code))
            kind = self._classify(frame.f_code) if kind is None else kind
            if kind != 2:
                return frame if kind == 0 else None
            frame = frame.f_back
        return None

    def at(self, frame: FrameType | None) -> Site | None:
        """Return the site of a frame."""
        if frame is None:
            return None
        key = (id(frame.f_code), frame.f_lasti)
        site = self._sites.get(key)
        return self._build(frame) if site is None else site

    def here(self, depth: int = 2) -> Site | None:
        """Return the user's site of the current call (``depth`` 2 skips the caller of this method)."""
        return self.at(self.frame(depth))

    def chain(self, depth: int = 2) -> tuple[Site, ...]:
        """Return the user's places on the stack, the innermost first (``depth`` 2 skips the caller of this method)."""
        frame: FrameType | None = sys._getframe(depth)
        places: list[Site] = []
        while frame is not None and len(places) < _LONGEST_CHAIN:
            if self.kind(frame.f_code) == 0:
                site = self._sites.get((id(frame.f_code), frame.f_lasti))
                places.append(self._build(frame) if site is None else site)
            frame = frame.f_back
        return tuple(places)

    def own_files(self) -> list[str]:
        """Return the files of the program that are imported so far."""
        modules = len(sys.modules), next(reversed(sys.modules), "")
        if modules != self._imported:  # a program with torch has two thousand modules
            self._imported = modules
            for name, module in list(sys.modules.items()):
                if name not in self._met:
                    self._met.add(name)
                    path = getattr(module, "__file__", None)
                    if path and path.endswith(".py") and not self.is_installed(path) and path not in self._own_files:
                        self._own_files.append(path)
        return self._own_files[:_MOST_FILES]

    def _build(self, frame: FrameType) -> Site:
        code = frame.f_code
        if id(code) not in self._kind:
            self._classify(code)
        position = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None))
        line, end_line, column, end_column = position
        known = column is not None and end_column is not None and end_line is not None
        site = Site(
            path=code.co_filename,
            line=line or frame.f_lineno or 1,
            column=column if known and column is not None else -1,
            end_line=end_line if known and end_line is not None else -1,
            end_column=end_column if known and end_column is not None else -1,
            function=code.co_name,
        )
        self._sites[id(code), frame.f_lasti] = site
        return site

    def result_dropped(self, frame: FrameType) -> bool:
        """Return True if the caller discards the result of its current call: ``model(x)`` or ``_ = model(x)``."""
        key = (id(frame.f_code), frame.f_lasti)
        dropped = self._dropped.get(key)
        if dropped is None:
            following = (i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti)
            instruction = next(following, None)
            dropped = self._dropped[key] = instruction is not None and (
                instruction.opname == "POP_TOP"
                or (instruction.opname.startswith("STORE_") and instruction.argval == "_")
            )
            if id(frame.f_code) not in self._kind:
                self._classify(frame.f_code)
        return dropped


def _is_package(path: str) -> bool:
    """Return True if a file belongs to an installed package of any environment: a user's, a system's, another one's.

    >>> _is_package("/usr/lib/python3/dist-packages/numpy/core.py"), _is_package("/home/me/train.py")
    (True, False)
    """
    return not {"site-packages", "dist-packages"}.isdisjoint(path.replace("\\", "/").split("/"))
