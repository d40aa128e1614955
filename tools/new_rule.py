"""Write the skeletons of a rule: its module, its test and its proof. `make new-rule ID=my-rule` runs this.

Every file has `FILL IN` where the author must write; the tests refuse the rule until all are replaced.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from string import Template

from truestep import __version__

ROOT = Path(__file__).resolve().parent.parent

RULE = '''"""FILL IN: one sentence on how the evidence is read, or remove this docstring."""

from __future__ import annotations

from truestep.events import Event, OptimizerStepped
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule


class $CLASS(Rule):
    """FILL IN: the failure in one sentence, at most 120 characters, with a full stop.

    What it does
    ------------
    FILL IN: the failure, and the evidence for it. Name a state as evidence, not the function that was called.

    Why it matters
    --------------
    FILL IN: the effect on the trained result. Quote the measurement of proofs/$ID.

    Example
    -------
    ::

        FILL_IN  # the shortest code that has the failure, with a comment at the line at fault

    Fix
    ---
    FILL IN: one imperative sentence, then the corrected code::

        FILL_IN

    Known false alarms
    ------------------
    FILL IN: correct code that is reported, and the reason; or "None known."

    References
    ----------
    - FILL IN: a link to the documentation of torch, or to a paper
    """

    id = "$ID"
    since = "$SINCE"
    severity = Severity.ERROR  # FILL IN: error, warning or speed
    account = "steps"  # FILL IN: the account in `truestep.accounts` that the failure belongs to
    watches = (OptimizerStepped,)  # FILL IN: the kinds of events that `observe` reads
    needs = (OptimizerStepped,)  # FILL IN: the kinds without which the rule is not observed

    def observe(self, event: Event, run: Progress) -> None:
        # FILL IN: self.report(event.site, "the failure", run=run, label="under the line at fault", help="do this")
        pass
'''

TEST = """import pytest

from truestep.events import OptimizerStepped, Site
from truestep.rules.$MODULE import $CLASS
from truestep.testing import judge

STEP = Site("train.py", 32, 8)


def test_the_failure_is_found_at_its_line():
    (finding,) = judge($CLASS, [OptimizerStepped(optimizer=1, site=STEP)] * 3)  # FILL IN: events that have it
    assert finding.primary.site == STEP
    assert finding.seen.first_step == 0


def test_the_corrected_code_is_quiet():
    pytest.fail("FILL IN: the same events without the failure")


def test_a_healthy_style_that_looks_alike_is_quiet():
    pytest.fail("FILL IN: correct code that is most similar to the failure")
"""

PROGRAM = '''"""FILL IN: the training, in one sentence; the same in both programs."""

import sys

import torch

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

# FILL IN: at most 40 lines on the CPU$WHAT
result = float("nan")
print(f"result: {result:.4f}")
'''

PROOF = """rule = "$ID"
metric = "FILL IN: the number that the programs print as their result"
better = "higher"
margin = 0.0  # FILL IN: the least harm that the proof must show, above 0
seeds = [0, 1, 2]
harm = "FILL IN: the harm in one sentence, with the numbers measured"
"""


def files(id: str) -> dict[str, str]:
    """Return the text of every file of a new rule, by its path in the repository.

    Raises:
        ValueError: the id is not in kebab case.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", id):
        raise ValueError(f'"{id}" is not a rule id: name the bad pattern in kebab case, such as clip-after-step')
    module = id.replace("-", "_")
    names = {
        "ID": id,
        "MODULE": module,
        "CLASS": "".join(word.capitalize() for word in id.split("-")),
        "SINCE": ".".join(__version__.split(".")[:2]),
    }
    texts = {
        f"src/truestep/rules/{module}.py": RULE,
        f"tests/rules/test_{module}.py": TEST,
        f"proofs/{id}/bad.py": PROGRAM.replace("$WHAT", "; end the line at fault with `# error: $ID`"),
        f"proofs/{id}/good.py": PROGRAM.replace("$WHAT", "; bad.py without the failure, and nothing else changed"),
        f"proofs/{id}/proof.toml": PROOF,
    }
    return {path: Template(text).substitute(names) for path, text in texts.items()}


def write(id: str, root: Path) -> list[Path]:
    """Write the files of a new rule below a folder; return their paths.

    Raises:
        ValueError: the id is not in kebab case.
        FileExistsError: one of them is already there; nothing is written.
    """
    texts = {root / path: text for path, text in files(id).items()}
    for path in texts:
        if path.exists():
            raise FileExistsError(f"{path.relative_to(root)} exists already")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return list(texts)


def main() -> None:
    """Write the skeletons and print the next steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("id", help="name of the bad pattern in kebab case, such as clip-after-step")
    try:
        written = write(parser.parse_args().id, ROOT)
    except (ValueError, FileExistsError) as error:
        parser.error(str(error))
    for path in written:
        print(path.relative_to(ROOT))
    print("\nWrite the proof first, and measure it: python proofs/measure.py ID --write")
    print("The tests refuse the rule until every FILL IN is replaced.")
    print('CONTRIBUTING.md, "Adding a rule", lists the other files to change.')


if __name__ == "__main__":
    main()
