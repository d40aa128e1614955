"""Count wordings that plain English avoids, per 10,000 words, in Markdown, docstrings, comments and string literals.

    python tools/prose.py [--list] [PATH ...]

`--list` shows every place. tests/house/test_prose.py holds the limit.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDINGS = {
    "what-clause": r"\bwhat(?:ever)? (?!to\b|if\b|about\b|kind\b|else\b|it does$)[a-z_`*]",
    "whom": r"\b(?:whom|whose|whoever)\b",
    "is no": r"\b(?:is|are|was|were|be) no (?!longer\b|more\b|other\b)[a-z]",
    "told": r"\b(?:is|are|was|were|be|been|gets?) told\b|\btold (?:apart|of|about|by|to)\b|\btells? (?:an?|the|of)\b",
    "anew": r"\banew\b",
    "put back": r"\b(?:puts?|putting) (?:\w+ )?back\b|\btak(?:e|es|en|ing) up\b|\btook up\b",
    "of its own": r"\bof (?:its|their|his|your|one's) own\b",
    "nobody": r"\b(?:nobody|none of|by itself|nought|naught|thereby|therein|hitherto|likewise|beforehand)\b",
}
_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in WORDINGS.items()}
_SIGNS = frozenset({
    "what", "whatever", "whom", "whose", "whoever", "no", "told", "tell", "tells", "anew", "back", "up", "own",
    "nobody", "none", "itself", "nought", "naught", "thereby", "therein", "hitherto", "likewise", "beforehand",
})  # fmt: skip
"""Words of which each wording has one: other lines are not searched."""
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_DIRECT = re.compile(r"\?\s*$")


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line numbers and texts that people read: prose of Python files, Markdown without its code blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = _FENCE.sub(lambda block: "\n" * block.group().count("\n"), text)
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ():
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, line in enumerate(node.value.splitlines()):
                if not line.lstrip().startswith((">>>", "...")):
                    yield node.lineno + offset, line


def count(paths: list[Path]) -> tuple[int, list[tuple[Path, int, str, str]]]:
    """Return how many words there are, and the place, kind and line of every wording."""
    counted = [_counted(path) for path in paths]
    return sum(words for words, _ in counted), [place for _, found in counted for place in found]


@functools.cache
def _counted(path: Path) -> tuple[int, list[tuple[Path, int, str, str]]]:
    words, found = 0, []
    for line, text in passages(path):
        found_words = _WORD.findall(text)
        words += len(found_words)
        if _SIGNS.isdisjoint(map(str.lower, found_words)) or _DIRECT.search(text):
            continue
        for kind, pattern in _COMPILED.items():
            found += [(path, line, kind, text.strip()) for _ in pattern.finditer(text)]
    return words, found


def files(places: list[Path]) -> list[Path]:
    """Return the Python and Markdown files in these places, without those that are generated from src."""
    found = [place for place in places if place.is_file()]
    for place in places:
        if place.is_dir():
            found += sorted(path for path in place.rglob("*") if path.suffix in (".py", ".md"))
    symptoms = ROOT / "docs" / "how-to" / "symptoms.md"
    return [
        path for path in found if path.resolve() != symptoms and path.resolve().parent != symptoms.parents[1] / "rules"
    ]


def main(arguments: list[str]) -> int:
    """Print the counts of each place."""
    shown = "--list" in arguments
    places = [Path(argument) for argument in arguments if argument != "--list"]
    for place in places or [ROOT / "src", ROOT / "docs", ROOT / "README.md"]:
        words, found = count(files([place]))
        kinds = {kind: sum(kind == other for _, _, other, _ in found) for kind in WORDINGS}
        for path, line, kind, text in found if shown else ():
            print(f"{path}:{line}: {kind}: {text}")
        print(f"{place}: {10_000 * len(found) / max(1, words):.1f} per 10,000 of {words:,} words", kinds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
