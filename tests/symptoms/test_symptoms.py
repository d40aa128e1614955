"""The map of symptoms is complete, and the words of users lead to the right entry."""

import re
from pathlib import Path

import pytest

from truestep.cli import COMMANDS
from truestep.postmortem.catalogue import POST_MORTEMS
from truestep.rules import all_rules
from truestep.symptoms import SYMPTOMS, search, sentence

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "post-mortems.md"


def test_every_rule_and_post_mortem_has_a_symptom():
    causes = {cause for symptom in SYMPTOMS for cause in symptom.causes}
    assert causes == {*all_rules(), *POST_MORTEMS}


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.title)
def test_an_entry_is_consistent(symptom):
    assert len(set(symptom.causes)) == len(symptom.causes) > 0
    assert {cause for _, cause in symptom.words} <= {"", *symptom.causes}
    assert all(wording == wording.lower() for wording, _ in symptom.words)
    assert symptom.commands
    assert {re.search(r"truestep ([a-z-]+)", command)[1] for command in symptom.commands} <= set(COMMANDS)


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.title)
def test_every_wording_finds_its_own_symptom_and_the_cause_that_it_points_to(symptom):
    for wording, cause in ((symptom.title, ""), *symptom.words):
        match = search(wording)[0]
        assert match.symptom is symptom, wording
        assert not cause or match.causes[0] == cause, wording


@pytest.mark.parametrize(
    ("words", "title", "cause"),
    [
        ("my loss doesn't go down at all", "The loss never decreases", ""),
        ("accuracy stuck at 10%", "The accuracy is stuck at chance, or at the share of one class", ""),
        ("val acc higher than train acc", "The validation is better than the training, or too good to be true", ""),
        ("gpu memory keeps growing", "The memory grows from step to step, or runs out", "loss-kept-with-graph"),
        ("OOM", "The memory grows from step to step, or runs out", ""),
        ("noisy val loss", "The validation result varies from epoch to epoch, or from call to call", ""),
        ("training loss is great but test loss is awful", "It works in training and not in evaluation", ""),
        ("loss jumps after resuming", "A resumed or loaded model gives another result", ""),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)", "", "shapes-do-not-fit"),
        ("Expected all tensors to be on the same device, but found at least two devices", "", "different-devices"),
        ("training gets slower", "The training is slow", "loader-starves-training"),
        ("ema not updating", "Fine-tuning or a frozen part goes wrong", "average-never-updated"),
    ],
)
def test_words_of_users_find_the_symptom(words, title, cause):
    match = search(words)[0]
    assert match.symptom is not None
    assert title in ("", match.symptom.title)
    assert cause in ("", match.causes[0])


@pytest.mark.parametrize("words", ["", "the is a", "qwertz", "banana bread recipe"])
def test_other_words_find_nothing(words):
    assert search(words) == []


def test_the_kinds_of_post_mortems_are_those_of_the_reference():
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| (.+) \|$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(slug, kind.error, kind.names) for slug, kind in POST_MORTEMS.items()]


@pytest.mark.parametrize("slug", POST_MORTEMS)
def test_a_post_mortem_has_a_sentence(slug):
    assert re.fullmatch(r"The script crashes: .+\.", sentence(slug))
