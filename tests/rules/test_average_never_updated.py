"""average-never-updated: copies that were meant to follow a trained model."""

from truestep.events import CopyUnchanged, LayerRan, ModelMet, ParametersUnchanged, Site
from truestep.findings import Confidence
from truestep.lint import lint
from truestep.probes.optimizer.copies import idle_loop
from truestep.rules.average_never_updated import AverageNeverUpdated
from truestep.testing import judge

LOOP, CALLED = Site("train.py", 28, 8), Site("train.py", 40, 8)
NET = ModelMet(model=1, name="net", parameters=(1, 2), site=Site("train.py", 20, 8))


def found(name="model", steps=101, more=(), **facts):
    other = ModelMet(model=2, name=name, parameters=(3, 4), site=CALLED)
    still = ParametersUnchanged(parameters=(3, 4), moved=(1, 2), steps=steps)
    return judge(
        AverageNeverUpdated,
        [NET, other, still, CopyUnchanged(model=2, source=1, parameters=(3, 4), steps=steps, **facts), *more],
    )


def test_a_loop_that_binds_names_is_found_at_the_loop():
    (finding,) = found(loop=LOOP, names=("second",), steps=11)
    assert finding.message == "`second` keeps its first values while `net` is trained"
    assert finding.primary.site == LOOP
    assert finding.confidence is Confidence.HIGH


def test_an_average_of_torch_is_found_where_it_is_called():
    (finding,) = found(average=True, steps=11)
    assert finding.primary.site == CALLED


def test_names_of_averages_and_targets_have_medium_confidence():
    for name, equal in (("ema_model", False), ("self.slow", False), ("critic_target", True)):
        (finding,) = found(name, equal=equal)
        assert finding.confidence is Confidence.MEDIUM
    (finding,) = found("net", names=("model_ema",))
    assert finding.message.startswith("`model_ema`")


def test_a_copy_that_is_written_with_its_own_values_is_found_by_any_name():
    (finding,) = found(equal=True, written=True)
    assert (finding.primary.site, finding.confidence) == (CALLED, Confidence.MEDIUM)
    assert found(equal=True) == found(written=True) == found(equal=True, written=True, steps=11) == []


def test_references_teachers_and_random_targets_are_quiet():
    for name, equal in (("reference", True), ("teacher", True), ("old_policy", True), ("target", False)):
        assert found(name, equal=equal) == []


def test_a_part_that_began_as_a_copy_of_random_weights_is_found_where_it_runs():
    def part(**facts):
        whole = ModelMet(model=3, name="net", parameters=(1, 2, 3, 4), site=Site("train.py", 20, 8))
        ran = LayerRan(parameters=(3, 4), site=Site("model.py", 5, 4), outer=Site("model.py", 9, 4))
        copy = CopyUnchanged(model=3, path="keys", source=3, source_path="queries", parameters=(3, 4), **facts)
        still = ParametersUnchanged(parameters=(3, 4), moved=(1, 2), steps=101)
        return judge(AverageNeverUpdated, [whole, ran, still, copy])

    (finding,) = part(equal=True, initial=True, inside=True, steps=101)
    assert finding.message == "`net.keys` keeps its first values while `net.queries` is trained"
    assert finding.primary.site == Site("model.py", 9, 4)
    assert part(equal=True, inside=True, steps=101) == []
    assert part(equal=True, initial=True, steps=101) == []


def test_a_name_is_not_enough_in_a_short_run():
    assert found("ema", steps=21) == []


def test_a_copy_that_moves_later_is_quiet():
    later = ParametersUnchanged(parameters=(), moved=(1, 2, 3, 4), steps=201)
    assert found("critic_target", equal=True, more=[later]) == []


def test_copies_called_before_the_training_or_updated_before_are_quiet():
    assert found("ema", used=False) == found("ema", first=False) == []
    assert found(average=True, used=False) == found(average=True, first=False) == []
    assert found(loop=LOOP, used=False) == []
    assert len(found(loop=LOOP, first=False)) == 1


def test_a_copy_that_is_used_after_all_is_found_and_one_that_moves_is_withdrawn():
    later = CopyUnchanged(model=2, source=1, parameters=(3, 4), steps=110)
    assert len(found("ema", used=False, more=[later])) == 1
    moved = CopyUnchanged(model=2, source=1, parameters=(3, 4), steps=110, moved=True)
    assert found("ema", more=[moved]) == []


def test_loops_that_change_nothing(tmp_path):
    def line(body):
        path = tmp_path / f"{abs(hash(body))}.py"
        path.write_text(f"for a, b in zip(one.parameters(), two.parameters()):\n    {body}\n")
        site = idle_loop(str(path))
        return site and site.line

    assert line("a = 0.9 * a + 0.1 * b") == line("pass") == 1
    for body in ("a.data = b.data", "a += b", "a.lerp_(b, 0.1)", "total = a", "c = a - b; print(c)"):
        assert line(body) is None


def test_names_of_parts_in_a_loop_over_weights_are_no_average():
    loop = "import torch\nfor (name, a), (_, b) in zip(one.named_parameters(), two.named_parameters()):\n    {}\n"
    assert len(lint(loop.format("a = 0.9 * a + 0.1 * b"))) == 1
    for body in ("layer, _, key = name.rpartition('.'); put(layer, key, b)", "_ = a.copy_(b)"):
        assert list(lint(loop.format(body))) == []
