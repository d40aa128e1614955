"""Weights that do not fit a model: names with a wrapper's prefix, or layers of another size."""

from __future__ import annotations

import re

from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values
from truestep.postmortem.evidence.crash import Crash
from truestep.postmortem.evidence.frame_values import count

MESSAGE = r"^Error\(s\) in loading state_dict for "
_PREFIXES = {
    "module.": ("DataParallel or DistributedDataParallel", "model.module.state_dict()"),
    "_orig_mod.": ("torch.compile", "model._orig_mod.state_dict()"),
}
_SIZE = re.compile(
    r"size mismatch for (?P<key>[\w.]+): copying a param with shape torch\.Size\(\[(?P<theirs>[\d, ]*)\]\) "
    r"from checkpoint, the shape in current model is torch\.Size\(\[(?P<ours>[\d, ]*)\]\)"
)


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    return _prefixed(crash) or _sized(crash)


def _keys(crash: Crash, title: str) -> list[str]:
    line = re.search(rf"{title} key\(s\) in state_dict: (.*)", crash.message)
    return re.findall(r'"([^"]+)"', line[1]) if line else []


def _prefixed(crash: Crash) -> PostMortem | None:
    missing, unexpected = _keys(crash, "Missing"), _keys(crash, "Unexpected")
    for prefix, (wrapper, save) in _PREFIXES.items():
        if unexpected and [f"{prefix}{key}" for key in missing] == unexpected:
            return PostMortem(
                slug="weights-do-not-fit",
                error="",
                message=f"the checkpoint holds the same weights under names that begin with `{prefix}`",
                primary=crash.fails(f"all {count(len(missing), 'name')} agree except for the prefix"),
                facts=(("note", f"{wrapper} adds the prefix `{prefix}` to the names of the wrapped model"),),
                help=(
                    f"load `{{key.removeprefix('{prefix}'): value for key, value in state.items()}}`, "
                    f"and save `{save}` next time"
                ),
            )
        if missing and [f"{prefix}{key}" for key in unexpected] == missing:
            return PostMortem(
                slug="weights-do-not-fit",
                error="",
                message=f"the model's names begin with `{prefix}`, those of the checkpoint do not",
                primary=crash.fails(f"all {count(len(missing), 'name')} agree except for the prefix"),
                facts=(("note", f"{wrapper} adds the prefix `{prefix}` to the names of the wrapped model"),),
                help="load the weights into the model before it is wrapped",
            )
    return None


def _sized(crash: Crash) -> PostMortem | None:
    """Explain a mismatch of a single layer: its number of outputs differs from the checkpoint's."""
    if _keys(crash, "Missing") or _keys(crash, "Unexpected"):
        return None
    found = {one["key"]: (_numbers(one["theirs"]), _numbers(one["ours"])) for one in _SIZE.finditer(crash.message)}
    layers = {key.rpartition(".")[0] for key in found}
    if len(layers) != 1:
        return None
    (layer,) = layers
    theirs, ours = next(iter(found.values()))
    if len(theirs) != len(ours) or not theirs or theirs[1:] != ours[1:]:
        return None
    related: list[Mark] = []
    for name, root, _ in crash.modules():
        for path, one in frame_values.tree(root):
            if path == layer and not related:
                built = crash.built(one, name)
                if built is not None:
                    related.append(Mark(built, f"`{layer}` is made here, with {count(ours[0], 'output')}"))
    return PostMortem(
        slug="weights-do-not-fit",
        error="",
        message=f"`{layer}` has {count(theirs[0], 'output')} in the checkpoint and {ours[0]:,} in the model",
        primary=crash.fails("all other weights fit"),
        related=tuple(related),
        help=(
            f"make the model with {count(theirs[0], 'output')}, or remove `{layer}` from the loaded state "
            "and pass `strict=False`"
        ),
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number.strip()]
