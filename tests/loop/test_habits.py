"""What a program does with a pass that was under way when an epoch ended is kept beside the checkpoints."""

from truestep.loop.run.habits import NAME, Habits


def test_what_was_noted_after_the_last_checkpoint_is_known_to_the_next_process(tmp_path):
    habits = Habits()
    habits.keep_in(tmp_path, None)
    habits.note("side", 1, goes_on=False)
    again = Habits()
    again.keep_in(tmp_path, tmp_path)
    assert again.goes_on("side", 1) is False
    assert again.goes_on("other", 1) is None


def test_a_new_run_knows_nothing(tmp_path):
    habits = Habits()
    habits.keep_in(tmp_path, None)
    habits.note("side", 1, goes_on=False)
    Habits().keep_in(tmp_path, None)
    assert not (tmp_path / NAME).exists()


def test_the_first_act_in_an_epoch_counts(tmp_path):
    habits = Habits()
    habits.note("side", 1, goes_on=True)
    habits.note("side", 1, goes_on=False)
    assert habits.goes_on("side", 1) is True


def test_nothing_is_written_while_a_program_keeps_its_habit(tmp_path):
    habits = Habits()
    habits.keep_in(tmp_path, None)
    habits.note("side", 1, goes_on=True)
    written = (tmp_path / NAME).stat().st_mtime_ns
    habits.note("side", 2, goes_on=True)
    assert (tmp_path / NAME).stat().st_mtime_ns == written
    habits.note("side", 3, goes_on=False)
    assert Habits().goes_on("side", 3) is None
    again = Habits()
    again.keep_in(tmp_path, tmp_path)
    assert [again.goes_on("side", epoch) for epoch in (2, 3, 4)] == [None, False, None]
