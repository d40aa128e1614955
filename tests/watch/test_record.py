"""Events with several sites are written down and read back as they were."""

from pathlib import Path

from truestep import events as ev
from truestep.events import Site
from truestep.rules import Progress, Rule
from truestep.supervision import record
from truestep.supervision.record import Recorder


def test_every_site_of_an_event_comes_back(tmp_path: Path, monkeypatch) -> None:
    first, second = Site("train.py", 3, 4), Site("train.py", 9, 0, function="fit")
    events = (
        ev.GradientScaleRead(optimizer=1, site=first, plain=second, unscaled=first),
        ev.LossNotFinite(site=second, variable="x", variable_site=first, variables_finite=("a", "b")),
        ev.OptimizerStepped(optimizer=1, site=second),
    )
    recorder = Recorder(tmp_path, ev.RunStarted(script="train.py"))
    recorder.show(1, events, (0, 1), fired=True)
    recorder.close("finished", [])
    seen: list[ev.Event] = []

    class Listening:
        def __init__(self, rules: object) -> None:
            self.progress = Progress()
            self.rules: list[Rule] = []

        def show(self, chunk: tuple[ev.Event, ...], key: object) -> None:
            seen.extend(chunk)

    replay = record._Replay(Listening(()))  # type: ignore[arg-type]
    for number, line in enumerate((tmp_path / "rank-0.jsonl").read_text().splitlines(keepends=True)):
        replay.take(record._parse(line, number, tmp_path))
    for before, after in zip(events, seen, strict=True):
        assert type(before) is type(after)
        assert all(getattr(before, name) == getattr(after, name) for name in type(before).__dataclass_fields__)
