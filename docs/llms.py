"""Write `llms.txt`, the list of pages for coding assistants: `python docs/llms.py`. Also a hook of mkdocs.

The site has each page as Markdown beside its HTML, so that the links of `llms.txt` lead to Markdown there too.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parent
FILE = DOCS / "llms.txt"
_HEAD = """\
# TrueStep

> Supervises PyTorch training scripts, unmodified, and reports silent failures with file and line, evidence, cost and
> fix. Experiments prove a finding, verify a resume and tune the speed; `truestep.Run` is a toolkit for an own
> training loop.

Run `truestep lint` after each edit, without running anything, `truestep run train.py` after each change of a training
script, `truestep explain RULE` before mending a finding, and `truestep explain "loss is nan"` for a symptom in words.
`truestep mcp` serves the commands as tools; `truestep skills install` writes skills. Links are relative to this file.
"""


def text() -> str:
    """Return the content of `llms.txt`."""
    settings = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))
    return _HEAD + "".join(_sections(settings["nav"]))


def _sections(nav: list[dict[str, Any]]) -> Iterator[str]:
    alone = []
    for entry in nav:
        for title, inner in entry.items():
            if isinstance(inner, list):
                yield f"\n## {title}\n\n" + "".join(_line(*pair) for pair in _pages(inner))
            elif inner != "index.md":
                alone.append(_line(title, inner))
    yield "\n## Optional\n\n" + "".join(alone)


def _pages(nav: list[dict[str, Any]], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield titles and pages of a section; a page of a part of it has the title of the part in front."""
    for entry in nav:
        for title, inner in entry.items():
            if isinstance(inner, list):
                yield from _pages(inner, f"{title}: ")
            else:
                yield above + title, inner


def _line(title: str, page: str) -> str:
    return f"- [{title}]({page}): {_about((DOCS / page).read_text(encoding='utf-8'))}\n"


def _about(page: str) -> str:
    """Return the first sentence of a page, without Markdown."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    paragraph = next(part for part in re.split(r"\n\n+", prose)[1:] if re.match(r"[\w`*\[]", part))
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(paragraph.split()))
    sentence = re.match(r"(.+?[.:?])(?= [A-Z`]|$)", plain.replace("**", ""))
    return (sentence[1] if sentence else plain).rstrip(":.")


def on_post_build(config: dict[str, Any], **_: Any) -> None:
    """Copy the pages as Markdown into the site."""
    for page in re.findall(r"\]\(([\w/-]+\.md)\)", text()):
        target = Path(config["site_dir"], page)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DOCS / page, target)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8", newline="\n")
