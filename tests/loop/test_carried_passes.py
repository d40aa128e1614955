"""The use of a pass that was under way when an epoch ended is kept beside the checkpoints."""

from truestep.loop.position.carried_passes import NAME, CarriedPasses


def test_what_was_noted_after_the_last_checkpoint_is_known_to_the_next_process(tmp_path):
    carried = CarriedPasses()
    carried.keep_in(tmp_path, None)
    carried.note("side", 1, goes_on=False)
    again = CarriedPasses()
    again.keep_in(tmp_path, tmp_path)
    assert again.goes_on("side", 1) is False
    assert again.goes_on("other", 1) is None


def test_a_new_run_knows_nothing(tmp_path):
    carried = CarriedPasses()
    carried.keep_in(tmp_path, None)
    carried.note("side", 1, goes_on=False)
    CarriedPasses().keep_in(tmp_path, None)
    assert not (tmp_path / NAME).exists()


def test_the_first_act_in_an_epoch_counts(tmp_path):
    carried = CarriedPasses()
    carried.note("side", 1, goes_on=True)
    carried.note("side", 1, goes_on=False)
    assert carried.goes_on("side", 1) is True


def test_nothing_is_written_while_a_program_keeps_its_habit(tmp_path):
    carried = CarriedPasses()
    carried.keep_in(tmp_path, None)
    carried.note("side", 1, goes_on=True)
    written = (tmp_path / NAME).stat().st_mtime_ns
    carried.note("side", 2, goes_on=True)
    assert (tmp_path / NAME).stat().st_mtime_ns == written
    carried.note("side", 3, goes_on=False)
    assert CarriedPasses().goes_on("side", 3) is None
    again = CarriedPasses()
    again.keep_in(tmp_path, tmp_path)
    assert [again.goes_on("side", epoch) for epoch in (2, 3, 4)] == [None, False, None]
