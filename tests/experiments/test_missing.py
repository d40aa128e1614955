"""The step at which a resumed run goes on, and missing state, from traces made by hand."""

from dataclasses import replace

import pytest

from truestep.experiments.instruments.state.trace import Print, StateWrite, Trace, compare, is_rounding, read_trace
from truestep.experiments.resume.kills import Kill, plan
from truestep.experiments.resume.missing import missing
from truestep.experiments.resume.trial import ResumeVerdict, judge, went_on
from truestep.experiments.running.outcome import RunOutcome, Variant

EPOCH = 5


def weights(step, branch=0):
    return f"{step:07x}{branch:x}{step + 1000:07x}{branch:x}"


def made(step, **facts):
    """One step of a run with epochs of 5 batches, with all pieces of state."""
    plain = {
        "optimizer": "Adam",
        "weights": weights(step),
        "after": weights(step + 1),
        "sample": [1.0 + 0.1 * step],
        "sample_after": [1.1 + 0.1 * step],
        "state": {"exp_avg": step} if step else {},
        "rates": [0.1 * 0.5 ** (step // 5)],
        "settings": [{"betas": "(0.9, 0.999)"}],
        "schedules": [f"StepLR last_epoch {step}"],
        "scalers": ["scale 2 for 1 steps"],
        "buffers": {"Net: running_mean": [step]},
        "untrained": {},
        "random": {"torch": step, "python": 1, "numpy": 1},
        "put_back": [],
        "batches": [(100 * (step // EPOCH) + step % EPOCH, step % EPOCH + 1, 0)],
        "loss": 1 / (step + 1),
        "reads": 0,
        "names": ["net.weight", "net.bias"],
    }
    return Print(**{**plain, **facts})


def steps(start, end, **facts):
    return tuple(made(step, **facts) for step in range(start, end))


def judged(resumed, *, done=8, writes=(StateWrite("torch.save", "a.pt", 5),), how="finished"):
    whole = Trace(steps(0, 20), writes)
    killed = Trace(whole.steps[:done], writes)
    outcome = RunOutcome(Variant("resumed"), how, said="it says\nValueError: why")
    return judge(whole, killed, Trace(tuple(resumed)), Kill(done), "finished", outcome)


def test_the_same_steps_are_exact_and_those_done_twice_are_counted():
    trial = judged(steps(6, 20))
    assert (trial.verdict, trial.went_on, trial.again, trial.first, trial.missing) == (
        ResumeVerdict.EXACT,
        6,
        2,
        None,
        (),
    )


@pytest.mark.parametrize(
    ("piece", "facts"),
    [
        ("state", {"state": {}}),
        ("state", {"state": {}, "rates": [9.0]}),
        ("schedules", {"schedules": ["StepLR last_epoch 0"]}),
        ("schedules", {"schedules": ["StepLR last_epoch 0"], "rates": [9.0]}),
        ("rates", {"rates": [9.0]}),
        ("settings", {"settings": [{"betas": "(0, 0)"}]}),
        ("scalers", {"scalers": ["scale 1 for 0 steps"]}),
        ("buffers", {"buffers": {"Net: running_mean": [77]}}),
        ("random torch", {"random": {"torch": 99, "python": 1, "numpy": 1}, "loss": 0.9}),
        ("random torch", {"random": {"torch": 99, "python": 1, "numpy": 1}, "batches": [(999, 2, 0)], "loss": 0.9}),
        ("position", {"batches": [(0, 1, 0)], "loss": 0.9}),
        ("position", {"batches": [(0, 1, 0)], "loss": 0.9, "random": {"torch": 9}, "put_back": ["torch"]}),
        ("order", {"batches": [(999, 2, 0)], "loss": 0.9}),
        ("weights", {"weights": weights(6)[:8] + "ffffffff"}),
        ("unseen", {"loss": 0.9}),
    ],
)
def test_one_piece_that_differs_at_first_is_the_one_that_is_missing(piece, facts):
    others = [made(step, weights=weights(step, 1), after=weights(step + 1, 1), loss=0.5) for step in range(7, 20)]
    trial = judged([made(6, after=weights(7, 1), **facts), *others])
    assert (trial.verdict, trial.went_on, trial.first) == (ResumeVerdict.DIFFERS, 6, 7)
    assert [one.piece for one in trial.missing if one.effect] == [piece]


def test_the_same_samples_with_other_values_are_what_the_data_set_draws():
    first, *others = steps(6, 20)
    whole = [replace(step, batches=[(step.batches[0][0], step.batches[0][1], 70)]) for step in steps(0, 20)]
    other = replace(first, batches=[(999, 1, 70)], loss=0.9, after="x" * 16)
    (found,) = missing(Trace(tuple(whole)), 6, Trace((other, *others)), whole=True)
    assert found.piece == "samples"
    drawn = replace(other, random={"torch": 99, "python": 1, "numpy": 1})
    (found,) = missing(Trace(tuple(whole)), 6, Trace((drawn, *others)), whole=True)
    assert (found.piece, found.effect) == ("random torch", True)


def test_one_that_leaves_out_what_is_done_counts_from_there_and_its_length_tells():
    first, *others = steps(6, 20)
    other = replace(first, batches=[(999, 1, 7)], loss=0.9, random={"torch": 99, "python": 1, "numpy": 1})
    whole = Trace(steps(0, 20))
    assert [one.piece for one in missing(whole, 6, Trace((other, *others)), whole=True)] == ["random torch"]
    longer = Trace((other, *others, made(20)))
    assert "position" in [one.piece for one in missing(whole, 6, longer, whole=True)]


def test_of_two_optimizers_each_is_asked_for_what_it_steps_on():
    def both(start, end, **facts):
        pairs = [(made(n, after=weights(n + 1)), made(n, optimizer="SGD", **facts)) for n in range(start, end)]
        return [step for pair in pairs for step in pair]

    first, second, *others = both(6, 20)
    resumed = [replace(first, loss=0.9, after="x" * 16), replace(second, state={}, weights=weights(0)), *others]
    found = missing(Trace(tuple(both(0, 20))), 12, Trace(tuple(resumed)), whole=True)
    assert [one.piece for one in found] == ["weights", "state"]


def test_random_states_that_no_code_draws_from_are_not_missed():
    resumed = [replace(step, random={**step.random, "python": 5}) for step in steps(6, 20)]
    assert judged(resumed).missing == ()


def test_random_states_that_move_nothing_differ_and_do_no_harm():
    resumed = [replace(step, random={**step.random, "torch": 500 + n}) for n, step in enumerate(steps(6, 20))]
    trial = judged(resumed)
    assert trial.verdict is ResumeVerdict.EXACT
    assert [(one.piece, one.effect) for one in trial.missing] == [("random torch", False)]


def test_an_order_that_differs_from_the_next_epoch_on_is_that_of_the_random_state():
    resumed = [replace(step, random={**step.random, "torch": 500 + n}) for n, step in enumerate(steps(6, 20))]
    resumed[4:] = [
        replace(step, batches=[(900 + n, step.batches[0][1], 0)], loss=0.7, after="x" * 16)
        for n, step in enumerate(resumed[4:])
    ]
    trial = judged(resumed)
    assert trial.first == 11
    assert [(one.piece, one.effect) for one in trial.missing] == [("random torch", True)]


def test_epochs_that_are_counted_from_the_start_make_the_run_longer():
    more = steps(20, 25)
    trial = judged([*steps(5, 20), *more])
    assert (trial.verdict, trial.beyond, trial.first) == (ResumeVerdict.DIFFERS, 5, 21)
    assert [one.piece for one in trial.missing] == ["epochs"]


def test_steps_that_are_never_done_are_reported():
    trial = judged(steps(6, 15))
    assert (trial.verdict, trial.beyond, trial.first) == (ResumeVerdict.DIFFERS, -5, 16)
    assert "5 fewer steps" in trial.missing[0].detail
    nothing = judged([])
    assert (nothing.verdict, nothing.note) == (ResumeVerdict.DIFFERS, "it takes no step: steps 9 to 20 are never done")


def test_a_run_that_is_ended_by_its_count_of_steps_is_not_called_short():
    assert judged(steps(6, 15), how="stopped").verdict is ResumeVerdict.EXACT


def test_a_run_that_begins_again_is_distinguished_from_one_that_had_nothing_to_begin_with():
    assert judged(steps(0, 20)).verdict is ResumeVerdict.STARTED_AGAIN
    assert judged(steps(0, 20), writes=()).verdict is ResumeVerdict.NOTHING_SAVED


def test_a_crash_says_its_last_line():
    trial = judged([], how="crashed")
    assert (trial.verdict, trial.note) == (ResumeVerdict.CRASHED, "ValueError: why")


def test_weights_of_no_step_that_were_read_from_a_file_are_the_missing_ones():
    other = [replace(made(0), weights="f" * 16, sample=[50.0], reads=1)]
    trial = judged(other)
    assert trial.verdict is ResumeVerdict.DIFFERS
    assert [one.piece for one in trial.missing] == ["weights"]


def test_weights_in_another_precision_are_those_of_the_nearest_step():
    whole = Trace(steps(0, 20))
    assert went_on(whole, 8, replace(made(6), weights="f" * 16, sample=[1.601])) == 6
    assert went_on(whole, 8, replace(made(6), weights="f" * 16, sample=[9.0])) is None


def test_of_steps_with_the_same_weights_the_one_is_taken_whose_rest_fits():
    same = tuple(replace(step, weights="a" * 16) for step in steps(0, 4)) + steps(4, 9)
    assert went_on(Trace(same), 4, replace(made(2), weights="a" * 16)) == 2


def test_all_but_the_weights_was_put_back():
    trial = judged([made(6, weights=weights(0)), *steps(7, 20)])
    assert trial.went_on == 6
    assert [one.piece for one in trial.missing] == ["weights"]
    assert trial.missing[0].detail == "those of the first step, before any training"


@pytest.mark.parametrize(("loss", "moved", "verdict"), [(1e-7, 1e-6, "equal within rounding"), (1e-3, 1e-6, "differs")])
def test_only_what_rounding_explains_is_rounding(loss, moved, verdict):
    resumed = list(steps(6, 20))
    one = resumed[3]
    resumed[3] = replace(one, loss=one.loss * (1 + loss), after="x" * 16, sample_after=[one.sample_after[0] + moved])
    assert str(judged(resumed).verdict) == verdict


def test_a_small_update_in_another_direction_is_no_rounding():
    one = made(3, sample=[1.0], sample_after=[1.0 + 1e-6])
    assert not is_rounding(one, replace(one, sample_after=[1.0 - 1e-6]))
    assert is_rounding(one, replace(one, sample_after=[1.0 + 1.001e-6]))


def test_a_schedule_that_is_not_collected_yet_is_no_difference():
    one = made(3, schedules=["StepLR last_epoch 3", "StepLR last_epoch 9"])
    assert not compare(one, made(3)).counts
    assert compare(one, made(4)).pieces["schedules"]


def test_a_copy_that_lives_in_one_run_only_is_no_difference():
    one, other = made(3, untrained={"Net: w": [1, 2]}), made(3, untrained={"Net: w": [2]})
    assert not compare(one, other).counts
    assert compare(one, replace(other, untrained={"Net: w": [3]})).counts


def test_a_loader_that_draws_ahead_is_compared_by_its_last_batches():
    one = made(3, batches=[(7, 4, 0)])
    assert not compare(one, replace(one, batches=[(6, 3, 0), (7, 4, 0)])).counts


def test_kills_lie_after_the_first_save_and_one_in_a_later_one():
    writes = tuple(StateWrite("torch.save", "a.pt", step) for step in (0, 5, 10, 15, 20))
    for seed in range(20):
        planned = plan(Trace(steps(0, 20), writes), 4, seed, during_save=True)
        (within,) = (kill for kill in planned if kill.moment == "write")
        assert within.step in (10, 15)
        assert writes[within.write].steps == within.step
        assert all(6 <= kill.step <= 19 for kill in planned)
        assert len(planned) == 4
        assert plan(Trace(steps(0, 20), writes), 4, seed, during_save=True) == planned
    assert all(kill.moment != "write" for kill in plan(Trace(steps(0, 20), writes), 4, 0, during_save=False))
    assert [0 < kill.step < 20 for kill in plan(Trace(steps(0, 20)), 3, 0, during_save=True)] == [True] * 3
    assert [kill.step for kill in plan(Trace(steps(0, 2)), 3, 0, during_save=True)] == [1, 1, 1]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path):
    path = tmp_path / "prints.jsonl"
    path.write_text('{"write": {"kind": "rename", "path": "a"}}\n{"step": {"opti')
    assert read_trace(path) == Trace((), (StateWrite("rename", "a", 0),))
    assert read_trace(tmp_path / "none") == Trace(())


def test_nothing_is_missing_where_a_run_begins_after_the_last_step():
    whole = Trace(steps(0, 20))
    found = missing(whole, 20, Trace(steps(20, 25)), whole=True)
    assert [one.piece for one in found] == ["epochs"]


@pytest.mark.parametrize(
    ("state", "where"),
    [(6, "it is that of step 7"), (99, "something draws from it between restoring and this step")],
)
def test_a_random_state_that_is_restored_already_is_not_advised_to_be_saved(state, where):
    random = {"torch": state, "python": 1, "numpy": 1}
    first = made(5, random=random, put_back=["torch"], loss=0.9)
    trial = judged((first, *steps(6, 20)))
    (one,) = trial.missing
    assert one.piece == "random torch"
    assert where in one.detail
    assert "restored already" in one.remedy
    fresh = judged((made(5, random=random, loss=0.9), *steps(6, 20))).missing
    assert [(piece.detail.partition(";")[0], "restored already" in piece.remedy) for piece in fresh] == [
        ("starts from its initial value", False)
    ]


def test_an_epoch_that_never_ends_and_begins_again_leaves_open_a_count_of_steps():
    one_epoch = [made(step, batches=[(step, step + 1, 0)]) for step in range(20)]
    again = [made(6 + step, batches=[(step, step + 1, 0)], loss=0.9) for step in range(20)]
    found = {piece.piece: piece for piece in missing(Trace(tuple(one_epoch)), 6, Trace(tuple(again)), whole=True)}
    assert (
        "6 more steps are taken than were left: if a count of steps ends the run, save it too"
        in found["position"].detail
    )


@pytest.mark.parametrize(
    ("others", "advice"),
    [
        (["c-5/model.pt", "c-5/args.bin"], "resume from the one before"),
        (["a.pt"], "write to a file of another name, and rename it when it is complete"),
    ],
)
def test_a_file_of_a_checkpoint_of_several_is_not_renamed_alone(others, advice):
    from truestep.experiments.reports.resume import explained

    writes = tuple(StateWrite("torch.save", path, 5) for path in others)
    whole = Trace(steps(0, 20), writes)
    kill = Kill(5, "write", len(others) - 1, others[-1])
    outcome = RunOutcome(Variant("resumed"), "crashed", said="FileNotFoundError: c-5/state.json")
    trial = judge(whole, Trace(whole.steps[:5], writes[:-1]), Trace(()), kill, "finished", outcome)
    assert trial.verdict is ResumeVerdict.CRASHED
    assert advice in " ".join(explained(trial).split())
