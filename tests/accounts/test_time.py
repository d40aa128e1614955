"""The account of time on hand-built events."""

from truestep.events import LoaderMet, LoaderTimed, Site
from truestep.rules import Progress

MET = LoaderMet(loader=1, name="train_loader", site=Site("train.py", 20, 8))
TIMED = LoaderTimed(loader=1, passes=3, drawn=90, waited_s=2.5, starting_s=0.5, span_s=10.0)


def test_short_waits_have_no_line():
    run = Progress()
    run.note(MET)
    assert run.time.entry() is None


def test_the_longest_wait_is_named():
    run = Progress()
    for event in (MET, LoaderTimed(loader=2, passes=1, drawn=3, waited_s=1.0, starting_s=0.0, span_s=2.0), TIMED):
        run.note(event)
    entry = run.time.entry()
    assert entry.text == "2.5 of 10.0 s waiting for data, 25% (train.py:20)"
    assert [one["loader"] for one in entry.facts["loaders"]] == ["loader", "train_loader"]


def test_a_wait_for_a_loader_without_a_line():
    for known in ((), (LoaderMet(loader=1, name="train_loader"),)):
        run = Progress()
        for event in (*known, TIMED):
            run.note(event)
        assert run.time.entry().text == "2.5 of 10.0 s waiting for data, 25%"
