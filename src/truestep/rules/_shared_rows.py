"""Whether an evaluation, or a part of the data, has rows of the training."""

from __future__ import annotations

from typing import Any

from truestep.accounts.samples import CLEAN, Evaluation
from truestep.events import CopiesEvaluated, RowsEvaluated, SamplesShared, SelectionsShared, WindowsShared
from truestep.findings import Confidence, Mark
from truestep.rules._loader_names import is_for_choice, is_held_out, is_of_test
from truestep.rules._rule import Progress

_LEAST_SHARED = 10
_LEAST_SHARE = 0.1
"""Least fraction of evaluation samples that were trained on, compared by index."""
_LEAST_EQUAL_SHARE = 0.2
"""The same, compared by value: a few equal samples are normal."""
_LEAST_COPIES = 0.05
"""The same for rows of measured numbers, where the training has rows several times."""
_LEAST_OTHERS = 3
_LEAST_OTHER_SHARE = 0.02
"""Least number and fraction of samples that only one side has: full overlap is a training accuracy or an export."""
_MOST_FREE = 0.05
"""Largest share of rows near to those of the training by chance, in a class that was not filled up."""
_LEAST_BETWEEN = 0.4
_LEAST_NEAR = 0.6
"""Least share of rows on a line with two rows of the training, and of copies, in a class that was filled up."""
_LEAST_CLUMPS = 0.3
"""Least number of rows that they are copies of, as a part of the copies: fewer are groups of the data."""
_EVEN = 0.75
"""Least size of the smaller one of two classes after the smaller one was filled up."""
_LEAST_CONTINUED = 0.5
"""Least share of windows that windows of the training continue, of those to expect after a split at random."""
_FEW = 0.1
"""Least share of the windows of a series that the steps of the training are read on."""
LEAST_SAMPLES = 20
_LEAST_STRETCH = 4
"""Least number of rows of a stretch on average, if two parts have stretches of rows in common."""
_CHANCE = 10
"""Shared samples must be at least this many times the number expected by chance."""
LEAST_WHOLE_SHARE = 0.8
"""Least share, estimated from some steps, at which all rows of an evaluation count as trained on."""
LEAST_WHOLE = 64
"""Fewer samples are a batch that a model is tried on."""
_SURE = 400
"""Number of hits to expect from which the share within one table is an estimate to rely on."""
LEAST_CLEAN = 0.2
"""Least size of a clean evaluation, as a part of another one, to be more than a few points for a picture."""


def leaks(event: SamplesShared) -> bool:
    """Return True if an evaluation has training samples and others, and lacks some of the training samples."""
    share = _LEAST_EQUAL_SHARE if event.by_value else _LEAST_SHARE
    least = max(_LEAST_SHARED, share * event.samples, _CHANCE * event.repeated)
    others = max(_LEAST_OTHERS, _LEAST_OTHER_SHARE * event.samples)
    beyond = max(_LEAST_OTHERS, _LEAST_OTHER_SHARE * event.shared)
    enough = event.samples >= LEAST_SAMPLES and event.shared >= least
    return not event.later and enough and event.outside >= others and event.beyond >= beyond


def is_trained_on_by_name(event: SamplesShared, run: Progress) -> bool:
    """Return True if the samples of a loader were trained on, and its name says that they are not to be."""
    whole = event.shared >= (1 - _LEAST_OTHER_SHARE) * event.samples and event.samples >= LEAST_SAMPLES
    whole = whole and event.shared >= _CHANCE * event.repeated
    beyond = max(_LEAST_OTHERS, _LEAST_OTHER_SHARE * event.shared)
    return not event.later and whole and event.beyond >= beyond and is_held_out(run.loader_name(event.loader))


def is_the_training(event: SamplesShared, run: Progress) -> bool:
    """Return True if an evaluation is on all samples of the training, and its name says that it is on none."""
    same = event.shared == event.samples >= LEAST_SAMPLES and not event.beyond
    name = run.loader_name(event.loader)
    return not event.later and same and (is_for_choice(name) or is_of_test(name))


def is_loaded_again(event: SamplesShared, run: Progress) -> bool:
    """Return True if an evaluation on all samples of the training reads them from another data set.

    A program that means the samples of the training passes their data set to another loader, or makes another data set
    of the same arrays.
    """
    met = run.loaders.get(event.loader)
    others = [run.loaders[number] for number in event.trained if number in run.loaders]
    known = met is not None and met.dataset > 0 and all(one.dataset > 0 for one in others)
    apart = known and bool(others) and met is not None and met.dataset not in {one.dataset for one in others}
    meant = not event.by_value and met is not None and met.dataset_kind == "TensorDataset"
    return apart and not meant and event.samples >= LEAST_WHOLE and event.shared >= _CHANCE * event.repeated


def is_trained_on(one: Evaluation) -> bool:
    """Return True if all rows of an evaluation are in the table of the training, and as many were read as of others."""
    inside = one.inside >= (1 - _LEAST_OTHER_SHARE) * one.samples
    return inside and one.hits >= _LEAST_SHARED and one.share >= LEAST_WHOLE_SHARE and one.samples >= LEAST_SAMPLES


def has_copies(one: RowsEvaluated) -> bool:
    """Return True if an evaluation has many rows of the training, and many others, and lacks most of the training."""
    many = one.hits >= 2 * _LEAST_SHARED and one.hits >= _LEAST_COPIES * one.samples
    return many and one.hits <= LEAST_WHOLE_SHARE * one.samples and 2 * one.inside <= one.rows


def are_made_of_others(one: CopiesEvaluated) -> bool:
    """Return True if the rows of one class were made out of rows of the training, and those of another were not.

    Copies are of many rows, in a class that was filled up to the size of another one.
    """
    if one.free < LEAST_SAMPLES or one.compared < LEAST_SAMPLES or one.free_hits > _MOST_FREE * one.free:
        return False
    if one.between:
        return one.hits >= _LEAST_BETWEEN * one.compared
    even = _EVEN * one.others <= one.samples <= one.others / _EVEN
    return even and one.clumps >= _LEAST_CLUMPS * one.compared and one.hits >= _LEAST_NEAR * one.compared


def is_mixed(one: Evaluation) -> bool:
    """Return True if an evaluation has rows of the training and others, and lacks some rows of the training."""
    outside = one.samples - one.inside
    alone = outside < max(_LEAST_OTHERS, _LEAST_OTHER_SHARE * one.samples)
    if alone and (one.last.windows or one.expected < _SURE):
        return False
    beyond = one.last.rows - one.inside
    enough = one.samples >= LEAST_SAMPLES and one.hits >= _LEAST_SHARED
    enough = enough and _LEAST_EQUAL_SHARE <= one.share <= LEAST_WHOLE_SHARE
    return enough and beyond >= max(_LEAST_OTHERS, _LEAST_OTHER_SHARE * one.inside)


def is_table_again(one: Evaluation) -> bool:
    """Return True if an array with the name of a test has all rows of the training, and no other ones."""
    last = one.last
    whole = last.own and last.wide and one.inside == one.samples == last.rows
    return whole and (is_of_test(last.table) or is_for_choice(last.table))


def is_shared(both: SelectionsShared) -> bool:
    """Return True if two parts of the data have many rows in common, and are not one part under two names.

    Validation rows within those of the training are often taken out of them later, under a third name; a part with all
    rows of the training can begin with them, and be scored behind them.
    """
    (first, second), trained = both.rows, both.parts[0] == "train"
    many = both.shared >= max(_LEAST_SHARED, _LEAST_SHARE * second) and second >= LEAST_SAMPLES
    within = both.shared >= (1 - _LEAST_OTHER_SHARE) * min(first, second)
    others = max(first, second) - both.shared >= max(_LEAST_OTHERS, _LEAST_OTHER_SHARE * max(first, second))
    scattered = both.stretches * _LEAST_STRETCH > both.shared  # windows of a series begin with rows before the part
    if trained and within:
        return False
    return many and others and (trained or both.chosen) and (within or scattered)


def is_continued(one: WindowsShared, others: list[WindowsShared]) -> bool:
    """Return True if half of the windows are continued by windows of the training, and no other evaluation has none."""
    clean = any(other.shared <= CLEAN * other.expected and other.expected >= LEAST_SAMPLES for other in others)
    return not clean and one.shared >= max(LEAST_SAMPLES, _LEAST_CONTINUED * max(one.expected, _FEW * one.samples))


def continued(one: WindowsShared, run: Progress) -> dict[str, Any]:
    """Return the report of an evaluation on windows with targets that are in windows of the training."""
    loader = run.loaders.get(one.loader) if one.loader is not None else None
    table = one.table if one.loader is None else run.loader_name(one.loader)
    made = one.made if loader is None else loader.site
    share = min(1.0, one.shared / one.expected)
    return {
        "site": made or one.site,
        "message": f"{share:.0%} of the targets of `{table}` are in windows of the training, after the same steps",
        "label": "overlapping windows of one series in both parts",
        "related": () if made is None or one.site is None else (Mark(one.site, "the evaluation"),),
        "cost": f"{one.shared:,} of {one.samples:,} windows go on in a window of the training steps that were read",
        "help": "split the series by time, and cut the windows of each part after that",
        "confidence": Confidence.MEDIUM,
        "unit": "evaluations",
        "key": ("windows", made or one.site),
    }


def is_clean(event: SamplesShared) -> bool:
    """Return True if hardly any sample of an evaluation was trained on."""
    return event.shared < _LEAST_SHARE * event.samples
