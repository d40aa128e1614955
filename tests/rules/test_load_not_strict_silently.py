from truestep.events import ModelCalled, ModelMet, Site, StateLoaded
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.load_not_strict_silently import LoadNotStrictSilently
from truestep.testing import judge

LOAD, OTHER = Site("train.py", 12, 0), Site("train.py", 14, 0)
USED = [ModelMet(model=1, name="net"), ModelCalled(model=1)]


def load(site=LOAD, module=1, dropped=6, matched=0, unread=True, state=1, offered=6, **more):
    return StateLoaded(
        site=site, module=module, missing=dropped, unread=unread, state=state, offered=offered, matched=matched,
        dropped=dropped, **more,
    )  # fmt: skip


def test_a_prefix_before_all_keys_is_found_at_the_load():
    (finding,) = judge(LoadNotStrictSilently, [load(found=6, added="module."), *USED])
    assert finding.primary.site == LOAD
    assert finding.confidence is Confidence.HIGH
    assert "the state dict has 6 of them" in finding.cost
    assert "remove `module.`" in finding.help


def test_a_prefix_that_is_lacking_is_found_although_the_head_is_new():
    (finding,) = judge(LoadNotStrictSilently, [load(found=4, lacking="backbone."), *USED])
    assert "add `backbone.` before" in finding.help


def test_a_whole_checkpoint_is_found():
    (finding,) = judge(LoadNotStrictSilently, [load(state=0, offered=0, found=6, inner="model"), *USED])
    assert 'key "model"' in finding.help


def test_the_wrapped_part_of_a_model_is_found():
    (finding,) = judge(LoadNotStrictSilently, [load(matched=2, dropped=10, found=10, added="_orig_mod."), *USED])
    assert "10 of 12 weights" in finding.message


def test_another_architecture_is_found_with_less_confidence():
    (finding,) = judge(LoadNotStrictSilently, [load()])
    assert finding.confidence is Confidence.MEDIUM


def test_a_run_that_was_stopped_before_the_model_was_used_is_quiet():
    assert judge(LoadNotStrictSilently, [load(found=6, added="module.")], ended="stopped") == []


def test_the_right_keys_are_quiet():
    assert judge(LoadNotStrictSilently, [load(dropped=0, matched=6), *USED]) == []


def test_a_new_head_is_quiet():
    assert judge(LoadNotStrictSilently, [load(dropped=2, matched=4), *USED]) == []
    assert judge(LoadNotStrictSilently, [load(dropped=2, matched=4, found=2, added="old."), *USED]) == []


def test_a_dict_without_tensors_is_quiet():
    assert judge(LoadNotStrictSilently, [load(state=0, offered=0), *USED]) == []


def test_a_result_that_is_looked_at_is_quiet():
    assert judge(LoadNotStrictSilently, [load(unread=False), *USED]) == []


def test_another_load_before_the_model_is_used_makes_up_for_it():
    again = load(site=OTHER, dropped=0, matched=6, state=2)
    assert judge(LoadNotStrictSilently, [load(found=6, added="module."), again, *USED]) == []
    assert judge(LoadNotStrictSilently, [load(found=6, added="module."), *USED, again]) == []


def test_parts_of_one_file_are_quiet_in_any_order():
    mine, other = load(), load(site=OTHER, module=2, dropped=0, matched=4)
    assert judge(LoadNotStrictSilently, [mine, other, *USED]) == []
    assert judge(LoadNotStrictSilently, [other, mine, *USED]) == []


def test_shards_at_one_line_are_quiet():
    shards = [load(state=1), load(state=2, module=2, matched=1, dropped=5), load(state=3)]
    assert judge(LoadNotStrictSilently, [*shards, *USED]) == []


def test_a_run_without_a_load_is_not_observed():
    verdict = LoadNotStrictSilently().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no load_state_dict")
