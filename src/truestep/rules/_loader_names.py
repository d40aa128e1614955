"""Names of loaders: those of samples that are held out."""

from __future__ import annotations

import re

_TEST = frozenset({"te", "test", "tst"})
_FOR_CHOICE = frozenset({"dev", "va", "val", "valid", "validation", "vld"})
_HELD_OUT = _TEST | _FOR_CHOICE | {"eval", "evaluation", "heldout", "holdout"}
_SEEN = frozenset({"tr", "train", "training", "trn", "fit", "seen", "memory", "overfit"})
_NEUTRAL = frozenset(
    {"", "b", "batch", "batches", "features", "images", "inputs", "iter", "s", "self", "splits", "x", "xs"}
)
_GENERAL = re.compile(r"loader|queue|data|dl|set|ds")


def is_held_out(name: str) -> bool:
    """Return True if a name says that the samples are not to be trained on.

    >>> is_held_out("val_loader"), is_held_out("testloader"), is_held_out("train_eval_loader"), is_held_out("loader")
    (True, True, False, False)
    >>> is_held_out("va_loader"), is_held_out("te_dl"), is_held_out("x_tr"), is_held_out("Xte"), is_held_out("Xtr")
    (True, True, False, True, False)
    """
    words = _words(name)
    return not words.isdisjoint(_HELD_OUT) and words.isdisjoint(_SEEN)


def is_only_held_out(name: str) -> bool:
    """Return True if a name says that samples are held out, and nothing else about them.

    >>> is_only_held_out("test_loader"), is_only_held_out("loaders['val']"), is_only_held_out("x_test_noisy")
    (True, True, False)
    >>> is_only_held_out("valid_queue"), is_only_held_out("train_queue")
    (True, False)
    """
    words = _words(name)
    return not words.isdisjoint(_HELD_OUT) and words <= _HELD_OUT | _NEUTRAL


def is_for_choice(name: str) -> bool:
    """Return True if a name says that models are chosen by the samples.

    >>> is_for_choice("val_loader"), is_for_choice("self.valid[0]"), is_for_choice("test_loader")
    (True, True, False)
    """
    words = _words(name)
    return not words.isdisjoint(_FOR_CHOICE) and words.isdisjoint(_SEEN)


def is_of_test(name: str) -> bool:
    """Return True if a name says that the samples are those of a final test.

    >>> is_of_test("test_loader"), is_of_test("x_test"), is_of_test("val_loader"), is_of_test("train_test")
    (True, True, False, False)
    """
    words = _words(name)
    return not words.isdisjoint(_TEST) and words.isdisjoint(_FOR_CHOICE | _SEEN)


def is_trained_on(name: str) -> bool:
    """Return True if a name says that the samples are those of the training."""
    return not _words(name).isdisjoint(_SEEN)


def _words(name: str) -> set[str]:
    words = re.split(r"[\W_\d]+", _GENERAL.sub("_", name.lower()))
    return {one[1:] if one[:1] in "xy" and one[1:] in _HELD_OUT | _SEEN else one for one in words}
