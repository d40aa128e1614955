"""Installation of the skills: one folder with a SKILL.md each, in the place where an assistant looks for them.

A written file carries the version and a digest of its text in its header. A file that still has its digest was not
changed by the user, and a later version replaces it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from truestep import __version__
from truestep.errors import FileExists, UnwritableFolder

FOLDERS = {
    "agents": ".agents/skills",
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "copilot": ".github/skills",
    "cursor": ".cursor/skills",
}
"""Folder in a project by assistant; "agents" is the one that several of them read."""
SOURCE = Path(__file__).with_name("skills")
_FILE = "SKILL.md"
_MARK = re.compile(r"^metadata: \{truestep: \"[^\"]*\", digest: \"([0-9a-f]{12})\"\}\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill."""

    name: str
    description: str
    text: str
    """The content of its file, without the mark."""

    def marked(self) -> str:
        """Return the content with the mark as the last line of its header."""
        head, end, body = self.text[4:].partition("---\n")
        mark = f'metadata: {{truestep: "{__version__}", digest: "{_digest(self.text)}"}}\n'
        return f"---\n{head}{mark}{end}{body}"


def skills() -> list[Skill]:
    """Return all skills, by name."""
    found = []
    for path in sorted(SOURCE.glob(f"*/{_FILE}")):
        text = path.read_text(encoding="utf-8")
        header = dict(line.split(": ", 1) for line in text[4:].partition("\n---\n")[0].splitlines())
        found.append(Skill(header["name"], header["description"], text))
    return found


def install(folder: Path, *, force: bool = False) -> list[tuple[Path, str]]:
    """Write the skills into a folder; return their files, each with "written", "updated" or "unchanged".

    Args:
        folder: created if it is missing.
        force: overwrite files that were changed.

    Raises:
        FileExists: files were changed, or are not from TrueStep; nothing was written then.
        UnwritableFolder: a file cannot be written.
    """
    wanted = [(folder / skill.name / _FILE, skill.marked()) for skill in skills()]
    changed = [path for path, _ in wanted if not force and _changed(path)]
    if changed:
        raise FileExists(
            f"{', '.join(map(str, changed))} {'was' if len(changed) == 1 else 'were'} changed, or made by others",
            expected="expected files as TrueStep wrote them; nothing was written",
            remedy="keep them and choose another folder with --to DIR, or overwrite them with --force",
        )
    return list(_written(wanted))


def _written(wanted: list[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for path, text in wanted:
        before = path.read_bytes() if path.is_file() else None
        if before == text.encode():
            yield path, "unchanged"
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UnwritableFolder(
                f"{path} cannot be written",
                expected=f"expected a folder that can be created and written to, got: {error.strerror or error}",
                remedy="give another one with --to DIR",
            ) from None
        yield path, "written" if before is None else "updated"


def _changed(path: Path) -> bool:
    """Return True if a file exists and is not as TrueStep wrote it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, UnicodeDecodeError):
        return True
    mark = _MARK.search(text)
    return mark is None or mark[1] != _digest(_MARK.sub("", text, count=1))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
