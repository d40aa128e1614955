"""Manual page of a rule: parse its docstring into sections and write it as Markdown. Text only; loads no rule."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item or a code block. Names in prose are in single backticks."""

    kind: Literal["text", "item", "code"]
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks below it."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A manual page: one sentence, then sections."""

    title: str
    """The failure in one sentence, with a full stop."""
    sections: tuple[Section, ...]

    def section(self, heading: str) -> Section | None:
        return next((section for section in self.sections if section.heading == heading), None)

    def text(self, heading: str) -> str:
        """Return the prose of a section on one line, without its code."""
        section = self.section(heading)
        return " ".join(block.text for block in section.blocks if block.kind != "code") if section else ""

    def markdown(self, *, level: int = 2, title: bool = True) -> str:
        """Return the page as Markdown, with section headings of this level."""
        parts = [self.title] if title else []
        for section in self.sections:
            parts.append(f"{'#' * level} {section.heading}")
            for position, block in enumerate(section.blocks):
                follows = position > 0 and section.blocks[position - 1].kind == "item" == block.kind
                if follows:
                    parts[-1] += f"\n{_markdown(block)}"
                else:
                    parts.append(_markdown(block))
        return "\n\n".join(parts) + "\n"


def parse(docstring: str) -> Page:
    """Parse a docstring into a title and sections.

    >>> page = parse("A step is lost.\\n\\nFix\\n---\\nWrite::\\n\\n    opt.step()\\n")
    >>> page.title, page.sections[0].heading, [block.kind for block in page.sections[0].blocks]
    ('A step is lost.', 'Fix', ['text', 'code'])
    """
    lines = inspect.cleandoc(docstring).splitlines()
    starts = [i for i in range(len(lines) - 1) if lines[i] and re.fullmatch(r"-{3,}", lines[i + 1])]
    head = lines[: starts[0]] if starts else lines
    title = " ".join(block.text for block in _blocks(head) if block.kind == "text")
    ends = [*starts[1:], len(lines)]
    sections = (Section(lines[i], _blocks(lines[i + 2 : end])) for i, end in zip(starts, ends, strict=False))
    return Page(title, tuple(sections))


def _markdown(block: Block) -> str:
    if block.kind == "code":
        return f"```python\n{block.text}\n```"
    text = re.sub(r"(?<![<(\"\w])(https?://[^\s)>]+)", r"<\1>", block.text)
    return f"- {text}" if block.kind == "item" else text


def _blocks(lines: list[str]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    code = False
    position = 0
    while position < len(lines):
        line = lines[position]
        if not line.strip():
            position += 1
            continue
        if code and line.startswith(" "):
            end = position
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
                end += 1
            blocks.append(Block("code", inspect.cleandoc("\n" + "\n".join(lines[position:end])).rstrip()))
            code, position = False, end
            continue
        end = position + 1
        while end < len(lines) and lines[end].strip() and not lines[end].startswith("- "):
            end += 1
        item = line.startswith("- ")
        text = " ".join(part.strip() for part in lines[position:end]).removeprefix("- " if item else "")
        code = text.endswith("::")
        text = re.sub(r"\s*::$", ":", text) if code else text
        if text != ":":
            blocks.append(Block("item" if item else "text", text.replace("``", "`")))
        position = end
    return tuple(blocks)
