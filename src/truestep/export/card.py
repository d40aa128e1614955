"""The model card of an export: `README.md`, with the block of metadata that the Hugging Face Hub reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truestep.export.int8.table import cells, verdict

_TASKS = {
    ("images", True): "image-classification",
    ("table", True): "tabular-classification",
    ("table", False): "tabular-regression",
    ("text", True): "text-classification",
    ("tokens", True): "text-generation",
}
"""Task of the Hub by kind of preprocessing, and True with classes."""
_TAGS = {"pt2": "torch-export", "onnx": "onnx", "aoti": "aotinductor", "safetensors": "safetensors"}
_LEFT_OUT = frozenset(
    [
        "alerts",
        "data",
        "device",
        "export",
        "init_from",
        "keep_last",
        "log_every_n_steps",
        "mirror",
        "on_sigusr1",
        "out",
        "param_dtype",
        "predict",
        "progress",
        "rank_timeout",
        "reduce_dtype",
        "resume",
        "strategy",
        "trackers",
        "watch",
    ]
)
"""Settings without a meaning for the model, or with paths of the machine."""


@dataclass(frozen=True)
class Supervision:
    """The observations of TrueStep in one process of a training, until the weights.

    Attributes:
        steps: optimizer steps.
        findings: rule, message and place of each failure.
        ledger: lines of the ledger by account.
        ranks: number of processes at the same time, of which the first one was read.
        limit: reason why parts were not observed; "" without one.
    """

    steps: int
    findings: Sequence[tuple[str, str, str]] = ()
    ledger: Mapping[str, str] = field(default_factory=dict)
    ranks: int = 1
    limit: str = ""


@dataclass(frozen=True)
class Facts:
    """Facts of a training that a card shows.

    Attributes:
        metrics: last logged values by name.
        counted: share and number of samples, by name, of metrics that are shares of samples, such as an accuracy.
        settings: of the run.
        environment: of the run, as in `environment.json`.
        supervision: of each process that has trained the weights, in the order of resumes; empty without supervision.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    supervision: Sequence[Supervision] = ()


def interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of samples, by Wilson (1927).

    Example:
        >>> [round(bound, 3) for bound in interval(0.9, 1000)]
        [0.88, 0.917]
    """
    z = 1.959964
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def card(config: Mapping[str, Any], facts: Facts) -> str:
    """Return the text of a card.

    Args:
        config: the content of `config.json`, with the comparison.
        facts: of the training.
    """
    name = str(config["model"]["class"]).rpartition(".")[2]
    parts = [
        _metadata(name, config, facts),
        f"# {name}\n\n{_weights(config['weights'])}",
        _section("Results", _metrics(facts)),
        _section("Inputs and outputs", _inputs(config)),
        _section("Preprocessing", _preprocessing(config["preprocessing"])),
        _section("Training", _settings(facts)),
        _section("Quantisation", _quantisation(config["quantisation"])),
        _section("Supervision", _supervision(facts.supervision, config["weights"])),
        _section("Export", _comparison(config)),
    ]
    return "\n".join(part for part in parts if part)


def _metadata(name: str, config: Mapping[str, Any], facts: Facts) -> str:
    described = config["preprocessing"] or {}
    task = _TASKS.get((described.get("kind", ""), bool(described.get("classes"))))
    lines = ["---", "tags:", "- pytorch", f"- {_TAGS[config['format']]}"]
    if task is not None:
        lines.append(f"pipeline_tag: {task}")
    shown = {name: value for name, value in facts.metrics.items() if math.isfinite(value)}
    if task is not None and shown:
        lines += ["model-index:", f"- name: {json.dumps(name)}", "  results:", f"  - task: {{type: {task}}}"]
        lines += ["    dataset: {name: evaluation set of the run, type: custom}", "    metrics:"]
        lines += [f"    - {{type: {json.dumps(key)}, value: {value:.6g}}}" for key, value in shown.items()]
    return "\n".join([*lines, "---", ""])


def _weights(origin: Mapping[str, Any]) -> str:
    parts = [f"step {origin['step']:,}"] if "step" in origin else []
    parts += [f"epoch {origin['epoch']}"] if origin.get("epoch") is not None else []
    parts += [f"`{origin['checkpoint']}`"] if origin.get("checkpoint") else []
    parts += [f"weights `{origin['name']}`"] if origin.get("name") else []
    return f"Trained with TrueStep: {', '.join(parts)}.\n" if parts else "Trained with TrueStep.\n"


def _metrics(facts: Facts) -> str:
    if not facts.metrics:
        return ""
    rows = []
    for name, value in facts.metrics.items():
        share, count = facts.counted.get(name, (math.nan, 0))
        if count and math.isclose(share, value, rel_tol=1e-6):
            low, high = interval(share, count)
            rows.append((name, f"{value:.4g}", f"{low:.4g} to {high:.4g}", f"{count:,}"))
        else:
            rows.append((name, f"{value:.6g}", "", ""))
    table = _table(("metric", "value", "95 % interval", "samples"), rows)
    return (
        f"{table}\nThe last logged values before the weights were saved. An interval (Wilson) is that of a share of "
        "samples; it does not contain the choice of the best checkpoint on the same samples.\n"
    )


def _inputs(config: Mapping[str, Any]) -> str:
    rows = [(each["name"], each["dtype"], _shape(each["shape"])) for each in config["inputs"]]
    rows += [("output", each["dtype"], _shape(each["shape"])) for each in config["outputs"]]
    return _table(("name", "type", "shape"), rows)


def _preprocessing(described: Mapping[str, Any] | None) -> str:
    if not described:
        return ""
    rows = []
    for name, value in described.items():
        text = json.dumps(value, ensure_ascii=False)
        shown = text if len(text) <= 100 else f"{len(value)} entries, in `config.json`"
        if value not in (None, "", []):
            rows.append((name, f"`{shown}`" if shown == text else shown))
    return _table(("part", "value"), rows)


def _settings(facts: Facts) -> str:
    rows = [
        (name, f"`{value}`")
        for name, value in facts.settings.items()
        if name not in _LEFT_OUT and value not in (None, False, "", [], ())
    ]
    environment = facts.environment
    rows += [(name, str(version)) for name, version in dict(environment.get("packages", {})).items()]
    rows += [(name, str(environment[name])) for name in ("python", "device", "device_name") if environment.get(name)]
    git = environment.get("git") or {}
    if git.get("commit"):
        rows.append(("commit", f"`{git['commit'][:12]}`{' with uncommitted changes' if git.get('changed') else ''}"))
    return _table(("setting", "value"), rows) if rows else ""


def _supervision(observed: Sequence[Supervision], origin: Mapping[str, Any]) -> str:
    moment = "the weights were saved" if origin.get("checkpoint") else "the export"
    if not observed:
        return f"None: the training before {moment} was not supervised by TrueStep, and no failure was looked for.\n"
    steps, total = sum(one.steps for one in observed), origin.get("step", 0)
    share = f"{steps:,} of the {total:,}" if steps < total else f"the {steps:,}"
    where = f"{share} steps before {moment}, under TrueStep's supervision"
    findings = list(dict.fromkeys(each for one in observed for each in one.findings))
    if findings:
        count = "1 failure" if len(findings) == 1 else f"{len(findings)} failures"
        parts = [f"{count} found in {where}.\n", _table(("rule", "failure", "place"), findings)]
    else:
        parts = [f"No failure found in {where}.\n"]
    ranks = max(one.ranks for one in observed)
    if ranks > 1:
        parts.append(f"These are observations of the first of {ranks} processes.\n")
    parts += [f"Not everything was observed: {one.limit}.\n" for one in observed if one.limit]
    for number, one in enumerate(observed, start=1):
        if one.ledger:
            width = max(map(len, one.ledger))
            lines = "\n".join(f"{name:<{width}}  {text}" for name, text in one.ledger.items())
            head = f"Part {number} of {len(observed)}, {one.steps:,} steps:\n\n" if len(observed) > 1 else ""
            parts.append(f"{head}```text\n{lines}\n```\n")
    return "\n".join(parts)


def _quantisation(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    heads, *rows = cells(found)
    return (
        f"{found['layers']} of {found['linear_layers']} linear layers have int8 weights, and quantise their inputs at "
        f"each call (torchao {found['torchao']}). Results of the training are those of {found['from']}. Measured on "
        f"{found['metric']['samples']:,} samples, on the CPU:\n\n"
        f"{_table(heads, rows)}\n{verdict(found)}.\n"
    )


def _comparison(config: Mapping[str, Any]) -> str:
    found = config["comparison"]
    sizes = ", ".join(map(str, found["batch_sizes"]))
    return (
        f"`{config['file']}` was loaded in a fresh process ({found['runtime']}) and compared with "
        f"{'eager' if config['quantisation'] is None else 'int8 in eager'} in "
        f"{found['calls']} calls with batches of {sizes}: largest difference {found['largest_difference']:.2g}, "
        f"relative {found['largest_relative_difference']:.2g}, tolerance {found['tolerance']:.0e}.\n"
    )


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _shape(shape: Iterable[Any]) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in shape)})"
