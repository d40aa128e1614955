"""Find symptoms and pages by the words of a user."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from dataclasses import dataclass

from truestep.rules import all_rules
from truestep.rules._page import parse
from truestep.symptoms.catalogue import SYMPTOMS, Symptom, sentence

_MOST_SYMPTOMS = 2
_MOST_PAGES = 5
_NEAR = 0.88
"""Least score of a second symptom, as a part of that of the first."""
_ENOUGH = 0.5
"""Least share of the words of a query that a symptom or a page has, weighted by their rarity."""
_PAGE = {"name": 20, "title": 8, "text": 1}
"""Weights of a word in the id of a rule, in its title, and in the text of its page."""
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        """
        a an the is are was be been it its my of in on at to for and or but that this than then with from by as i we
        me does do doesnt dont not no isnt wont cant can very too so all every each get gets got has have why how
        when after before while during which there any some just only also another other again more give gives
        go goes going what
        """,
    )
)
"""Words that are not compared."""
_SAME = {
    "val": "validation",
    "acc": "accuracy",
    "oom": "memory",
    "vram": "memory",
    "ram": "memory",
    "infinite": "inf",
    "infinity": "inf",
    "test": "validation",
    "eval": "validation",
    "evaluation": "validation",
    "better": "higher",
    "plateau": "stuck",
    "stagnate": "stuck",
    "converge": "learn",
    "train": "training",
    "ckpt": "checkpoint",
    "restart": "resume",
    "restore": "resume",
    "reload": "resume",
    "identical": "equal",
    "same": "equal",
    "constant": "equal",
    "reproduce": "reproducible",
    "explode": "diverge",
    "slower": "slow",
    "gradient": "grad",
    "lr": "rate",
    "dataloader": "loader",
    "crash": "error",
    "up": "increas",
    "rise": "increas",
    "down": "decreas",
    "fall": "decreas",
    "great": "good",
    "awful": "bad",
    "poor": "bad",
    "poorly": "bad",
    "badly": "bad",
}
"""Words that count as one, after their endings are cut."""


@dataclass(frozen=True, slots=True)
class Match:
    """A symptom or a page that fits the words of a user.

    Attributes:
        symptom: the symptom; None if the words are on pages of rules.
        said: the wording of the symptom that is nearest to that of the user, or the words that the pages have.
        causes: ids of rules and slugs of post-mortems, the most probable ones first.
        score: 0 to 1, the agreement with the words.
    """

    symptom: Symptom | None
    said: str
    causes: tuple[str, ...]
    score: float


def search(words: str) -> list[Match]:
    """Return the symptoms that fit some words, the best one first, and then rules with these words on their pages.

    Args:
        words: a description, such as "loss is nan", or a message of torch.

    >>> [match.symptom.title for match in search("accuracy stuck at 10%") if match.symptom][0]
    'The accuracy is stuck at chance, or at the share of one class'
    >>> search("qwertz")
    []
    """
    wanted = _stems(words)
    found = sorted(filter(None, (_fit(symptom, wanted) for symptom in SYMPTOMS)), key=lambda match: -match.score)
    found = [match for match in found if match.score > _NEAR * found[0].score][:_MOST_SYMPTOMS]
    named = {cause for match in found for cause in match.causes}
    least = _PAGE["title"] if found else 0
    pages = tuple(id for id, score in _on_pages(words) if id not in named and score >= least)[:_MOST_PAGES]
    return [*found, *([Match(None, " ".join(words.split()), pages, 0.0)] if pages else [])]


def _on_pages(words: str) -> list[tuple[str, int]]:
    """Return rules with all words on their pages, with the weight of the places, the largest first."""
    wanted = [
        re.compile(rf"\b{re.escape(word.removesuffix('s'))}")
        for word in re.findall(r"[a-z0-9]{3,}", words.lower())
        if word not in _EMPTY
    ]
    scores: dict[str, int] = {}
    for id, texts in _pages().items():
        each = [sum(_PAGE[place] * min(len(word.findall(text)), 3) for place, text in texts.items()) for word in wanted]
        if each and all(each):
            scores[id] = sum(each)
    return sorted(scores.items(), key=lambda item: -item[1])


@functools.cache
def _pages() -> dict[str, dict[str, str]]:
    """Return name, title and text of the page of each rule, in lower case."""
    found = {}
    for id, one in all_rules().items():
        page = parse(one.__doc__ or "")
        text = " ".join(block.text for section in page.sections for block in section.blocks if block.kind != "code")
        found[id] = {"name": id.replace("-", " "), "title": page.title.lower(), "text": text.lower()}
    return found


def _fit(symptom: Symptom, wanted: frozenset[str]) -> Match | None:
    """Return the agreement of a symptom with the words: that of its nearest wording, and of all its words together."""
    if not wanted:
        return None
    asked = _weight(wanted)
    best, said, points = 0.0, symptom.title, ""
    together: frozenset[str] = frozenset()
    for wording, cause in ((symptom.title, ""), *symptom.words):
        stems = _stems(wording)
        together |= stems
        score = _weight(stems & wanted) / math.sqrt(asked * _weight(stems))
        if score > best + 1e-9:
            best, said, points = score, wording, cause
    share = _weight(together & wanted) / asked
    if min(share, best) < _ENOUGH:
        return None
    return Match(symptom, said, _ranked(symptom, points, wanted), (best + share) / 2)


def _ranked(symptom: Symptom, points: str, wanted: frozenset[str]) -> tuple[str, ...]:
    """Return the causes of a symptom: that of the wording, then those with most of the words in their own sentence."""

    def agreement(cause: str) -> float:
        if cause == points:
            return 2.0
        share = _weight(_stems(f"{cause} {sentence(cause)}") & wanted) / _weight(wanted)
        return share if share >= _ENOUGH else 0.0

    return tuple(sorted(symptom.causes, key=agreement, reverse=True))


def _weight(stems: frozenset[str]) -> float:
    """Return the weight of some words: that of a rare one is larger."""
    counts = _counts()
    return sum(math.log(1 + len(SYMPTOMS) / counts.get(stem, 1)) for stem in stems)


@functools.cache
def _counts() -> Counter[str]:
    """Return the number of symptoms that have each word."""
    counts: Counter[str] = Counter()
    for symptom in SYMPTOMS:
        wordings = (symptom.title, *(wording for wording, _ in symptom.words))
        counts.update(set().union(*map(_stems, wordings)))
    return counts


@functools.cache
def _stems(text: str) -> frozenset[str]:
    """Return the words of a text without endings; words that count as one are the same.

    >>> sorted(_stems("The losses are becoming infinite"))
    ['becom', 'inf', 'loss']
    """
    words = re.findall(r"[a-z0-9]+", text.lower().replace("'", ""))
    return frozenset(_stem(word) for word in words if word not in _EMPTY)


def _stem(word: str) -> str:
    if word in _SAME:
        return _SAME[word]
    for ending, least in (("ing", 5), ("ed", 5), ("es", 4), ("s", 4), ("e", 4)):
        if word.endswith(ending) and len(word) >= least + 1 and not word.endswith("ss"):
            word = word.removesuffix(ending)
            doubled = ending in ("ing", "ed") and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls"
            word = word[:-1] if doubled else word
            break
    return _SAME.get(word, _SAME.get(f"{word}e", word))
