"""Write the manual pages of all rules to docs/rules, from their docstrings and proofs. Runs before the site is built.

By hand: ``python docs/rules.py``; this also updates docs/reference/rules.md, the table of rules, and
docs/how-to/symptoms.md, the rules by symptom.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from truestep.cli.rules import describe
from truestep.rules import Rule, _proof, all_rules
from truestep.rules._page import parse
from truestep.symptoms import SYMPTOMS, sentence

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "rules"
PROOFS = HERE.parent / "proofs"
TABLE = HERE / "reference" / "rules.md"
BY_SYMPTOM = HERE / "how-to" / "symptoms.md"
HEAD = """# Rules

Each rule is one silent failure. Its page explains the failure and its harm, with a proof: a broken and a correct
program, and the measured difference in the result. In the terminal, `truestep explain RULE` shows the page, and
`truestep explain RULE --prove` runs both programs.

The last columns have the results of the broken and of the correct program, the mean over the seeds, in the unit that
the page names; then whether [`truestep lint`](lint.md) reads the failure from the syntax, and whether it has
a [fix](fixes.md). Rules are grouped by the account of the report in which their failure shows."""
ACCOUNTS = {
    "steps": "Updates of the weights, by optimizers and by hand",
    "gradients": "Backward passes made, used, used again and dropped",
    "parameters": "Weights and buffers: trained, registered, frozen, loaded",
    "calls": "Calls of models: mode, gradients, layers",
    "loss": "Losses, their inputs and their targets",
    "samples": "The data of the training and of the evaluation",
    "randomness": "Random numbers and seeds",
    "rate": "Learning rates and schedules",
    "state": "Checkpoints and state dicts",
    "time": "Time and memory",
}
"""Accounts in the order of the report."""
HEAD_BY_SYMPTOM = """# By symptom

From an observation to its causes. In the terminal, `truestep explain` finds them by your own words, or by a message of
PyTorch:

    $ truestep explain loss is nan
    $ truestep explain works in train not in eval

The symptoms are in the order in which a training is debugged: values, learning, memory, evaluation, crashes,
checkpoints, time, several processes. The causes of each are in the order in which to suspect them. A supervised run
([`truestep run`](../reference/run.md)) looks for all of them at once."""


def on_pre_build(config: Any) -> None:
    """Write the pages; MkDocs calls this."""
    write(FOLDER)


def on_page_markdown(markdown: str, page: Any, **kwargs: Any) -> str:
    """Link the rules in the table to their pages; MkDocs calls this for each page."""
    # The committed table is read on GitHub too, where these pages do not exist.
    if page.file.src_uri not in ("reference/rules.md", "how-to/symptoms.md"):
        return markdown
    return re.sub(r"^\| `([a-z-]+)` \|", r"| [\1](../rules/\1.md) |", markdown, flags=re.MULTILINE)


def write(folder: Path) -> None:
    """Write all pages, and remove pages of rules that are gone."""
    folder.mkdir(exist_ok=True)
    pages = {f"{id}.md": page(rule) for id, rule in all_rules().items()}
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        # Unchanged files keep their time, or a server that watches them would build for ever.
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")


def table() -> str:
    """Return the page with the table of all rules."""
    parts = [HEAD]
    for account, subject in ACCOUNTS.items():
        rows = [
            f"| `{id}` | {rule.severity.value} | {parse(rule.__doc__ or '').title} | {_results(id)} | {_also(rule)} |"
            for id, rule in all_rules().items()
            if rule.account == account
        ]
        head = ["| rule | severity | finds | broken, correct | also |", "| --- | --- | --- | --- | --- |"]
        parts.append("\n".join([f"## {account.capitalize()}", "", f"{subject}.", "", *head, *rows]))
    return "\n\n".join(parts) + "\n"


def _also(rule: type[Rule]) -> str:
    """Return the other ways in which a rule is used, as text."""
    entry = describe(rule)
    return ", ".join([*(["lint"] if entry["lint"] else []), *(["fix"] if entry["fix"] else [])])


def _results(rule: str) -> str:
    """Return the mean results of the two programs of a proof; empty where there are none."""
    stated = _proof.load(PROOFS / rule)
    return f"{fmean(stated.bad):.3g}, {fmean(stated.good):.3g}" if stated is not None and stated.bad else ""


def by_symptom() -> str:
    """Return the page of symptoms."""
    parts = [HEAD_BY_SYMPTOM]
    for symptom in SYMPTOMS:
        rows = [f"| {_named(cause)} | {sentence(cause)} |" for cause in symptom.causes]
        commands = "\n".join(f"    $ {command}" for command in symptom.commands)
        table = "\n".join(["| cause | failure |", "| --- | --- |", *rows])
        parts.append(f"## {symptom.title}\n\n{symptom.first}\n\n{commands}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _named(cause: str) -> str:
    return f"`{cause}`" if cause in all_rules() else f"[`{cause}`](../reference/post-mortems.md)"


def page(rule: type[Rule]) -> str:
    """Return the manual page of a rule with its proof."""
    parsed = parse(rule.__doc__ or "")
    entry = describe(rule)
    needs = ", ".join(entry["needs"]) or "nothing"
    ways = {"safe": "; has a safe fix", "review": "; has a fix to be reviewed", None: ""}
    lint = "; read from the syntax too, by `truestep lint`" if entry["lint"] else ""
    facts = f"{rule.severity.value}, confidence {rule.confidence.value}, since {rule.since}; a run must show: {needs}"
    facts += lint + ways[entry["fix"]]
    text = f"# {rule.id}\n\n{parsed.title}\n\n*{facts}*\n\n{parsed.markdown(title=False)}"
    return text + proof(rule.id)


def proof(rule: str) -> str:
    """Return the proof of a rule: its numbers and its two programs. Empty where there is none."""
    folder = PROOFS / rule
    if not (folder / "bad.py").is_file():
        return ""
    stated = _proof.load(folder)
    parts = ["\n## Proof\n"]
    if stated is not None and stated.bad:
        parts.append(_numbers(stated))
    for name in ("bad.py", "good.py"):
        program = (folder / name).read_text(encoding="utf-8").rstrip()
        parts.append(f'```python title="{name}"\n{program}\n```\n')
    parts.append(f"Run it: `truestep explain {rule} --prove`\n")
    return "\n".join(parts)


def _numbers(stated: _proof.Proof) -> str:
    harm = stated.harm(stated.bad, stated.good)
    rows = [
        f"| {seed} | {bad:.4g} | {good:.4g} |"
        for seed, bad, good in zip(stated.seeds, stated.bad, stated.good, strict=True)
    ]
    says = f"{stated.says[:1].upper()}{stated.says[1:].rstrip('.')}.\n\n" if stated.says else ""
    what = f"{stated.metric[:1].upper()}{stated.metric[1:]}; {stated.better} is better.\n\n" if stated.metric else ""
    table = "\n".join(["| seed | bad.py | good.py |", "| --- | --- | --- |", *rows])
    mean = f"| mean | {fmean(stated.bad):.4g} | {fmean(stated.good):.4g} |"
    holds = (
        f"The harm is {harm:.4g}; the proof requires more than {stated.margin:.4g}. Measured with torch {stated.torch}."
    )
    return f"{says}{what}{table}\n{mean}\n\n{holds}\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    TABLE.write_text(table(), encoding="utf-8", newline="\n")
    BY_SYMPTOM.write_text(by_symptom(), encoding="utf-8", newline="\n")
