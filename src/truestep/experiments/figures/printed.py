"""Numbers that a script prints: those of its last line with a fraction, by the text before each."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf)(?![\w.]*\w)")
_AROUND = " \t:=,;%|()[]{}<>~-'\""
"""Characters around the name of a number."""
_TIMES = re.compile(r"\b(time|took|elapsed|eta|speed|duration|throughput|seconds?|secs?|ms)\b", re.IGNORECASE)
_UNITS = re.compile(r"\s*(?:s|ms|sec|secs|seconds?|min|minutes?|h|hours?|it/s|/s|\w+/s(?:ec)?)\b", re.IGNORECASE)
"""Words before and units after a number that is a time or a speed: these numbers differ from run to run."""
_HIGHER = re.compile(
    r"\b(acc|accuracy|top-?[15]|f1|auc|auroc|roc|ap|map|precision|recall|iou|miou|dice|bleu|rouge|psnr|ssim|r2|score"
    r"|correct|reward|return|hits?)\b",
    re.IGNORECASE,
)
_LOWER = re.compile(
    r"\b(loss|error|errors|err|ppl|perplexity|mse|mae|rmse|nll|bce|wer|cer|fid|bpc|bpb|cost|entropy|deviation)\b",
    re.IGNORECASE,
)
"""Names of numbers of which a higher or a lower one is better."""


def better(name: str) -> str:
    """Return the better direction of a number by its name: "higher", "lower", or "" where the name does not tell.

    >>> better("held-out accuracy"), better("val_loss"), better("result:")
    ('higher', 'lower', '')
    """
    words = name.replace("_", " ")
    found = [(match.end(), "higher") for match in _HIGHER.finditer(words)]
    found += [(match.end(), "lower") for match in _LOWER.finditer(words)]
    return max(found)[1] if found else ""


def last_figures(said: str) -> dict[str, float]:
    """Return the numbers of the last line that contains a fraction, keyed by the text before each; no times.

    >>> last_figures("epoch 3: loss 0.5\\nheld-out accuracy 96.2 %, error 0.04\\nbye")
    {'held-out accuracy': 96.2, 'error': 0.04}
    >>> last_figures("loss nan, accuracy 0.1")
    {'loss': nan, 'accuracy': 0.1}
    """
    for line in reversed(said.splitlines()):
        numbers = [match for match in _NUMBER.finditer(line) if re.search(r"[.en]", match[0].lower())]
        if numbers:
            starts = [0, *(match.end() for match in numbers)]
            named = [
                (line[start : match.start()].strip(_AROUND), match)
                for start, match in zip(starts, numbers, strict=False)
            ]
            return {
                name or "printed number": float(match[0])
                for name, match in named
                if not (_TIMES.search(name) or _UNITS.match(line, match.end()))
            }
    return {}
