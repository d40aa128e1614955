"""The page of a kind of post-mortem."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from truestep.postmortem.catalogue import POST_MORTEMS
from truestep.report.excerpt import wrap
from truestep.symptoms import SYMPTOMS


def show(slug: str, console: Console) -> None:
    """Print the error that a post-mortem belongs to, its content, the messages of torch and the way to get it.

    Args:
        slug: the kind of post-mortem.
        console: where to print.
    """
    kind = POST_MORTEMS[slug]
    messages = [said for symptom in SYMPTOMS for said, cause in symptom.words if cause == slug]
    console.print(Text(f"post-mortem[{slug}]", style="bold red"))
    parts = [
        ("The error", kind.error),
        ("Content of the post-mortem", kind.names),
        ("Messages", "; ".join(messages)),
        ("How to get it", "run the script as `truestep run train.py`: the report begins with the post-mortem"),
    ]
    for heading, text in parts:
        if text:
            console.print()
            console.print(Text(heading, style="bold blue"))
            for line in wrap(text[:1].upper() + text[1:], console.width):
                console.print(Text(line), soft_wrap=True)
