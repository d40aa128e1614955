"""A run that resumes with other settings, parts or data names old, new and effective values, or is refused."""

import pytest
import torch
from tiers import few
from torch import nn

from truestep import Run, schedules
from truestep.errors import BadCheckpoint, BadPart, BadSettings, KeysDoNotMatch, OpenWindow

SGD = torch.optim.SGD
STEPS = torch.optim.lr_scheduler


def data(size):
    generator = torch.Generator().manual_seed(0)
    return torch.utils.data.TensorDataset(torch.randn(size, 2, generator=generator), torch.randn(size, 1))


def train(
    out, *, stop=None, size=16, batch=2, lr=0.1, width=1, make=None, schedule=None, average=False, at_end=False,
    shuffle=True, drop_last=False, workers=0, **settings,
):  # fmt: skip
    """Train; return the lr of each update, and the weights. `stop` leaves after so many steps."""
    settings = {"max_epochs": 4, "seed": 2, "save_every_n_steps": None if at_end else 3} | settings
    run = Run(out=out, device="cpu", watch=False, progress=False, resume="auto", **settings)
    rates = []
    with run:
        model = run.model(nn.Linear(2, width))
        optimizer = run.optimizer(make(model) if make else torch.optim.AdamW(model.parameters(), lr=lr))
        if schedule is not None:
            run.scheduler(schedule(optimizer))
        ema = run.ema(model, 0.5) if average else None
        loader = run.loader(
            data(size), batch_size=batch, shuffle=shuffle, drop_last=drop_last, num_workers=workers, name="train"
        )
        for epoch in run.epochs():
            if at_end and stop == epoch:
                return rates
            for x, y in run.train(loader, model):
                if run.global_step == stop and not at_end:
                    run.discard()
                    return rates
                rates.append(optimizer.param_groups[0]["lr"])
                run.step((model(x) - y).square().mean())
            if at_end:
                run.save()
    return rates, [value.tolist() for value in model.parameters()], ema and ema.model.weight.tolist()


def adamw(**options):
    return lambda model: torch.optim.AdamW(model.parameters(), lr=0.1, **options)


def cosine(optimizer):
    return schedules.warmup_cosine(optimizer, warmup=3)


def said(capsys):
    return [line for line in capsys.readouterr().err.splitlines() if not line.startswith("truestep: Linear")]


def test_a_run_that_resumes_with_what_it_had_says_nothing(tmp_path, capsys):
    train(tmp_path, stop=10, schedule=cosine, average=True)
    train(tmp_path, schedule=cosine, average=True)
    assert said(capsys) == []


@pytest.mark.parametrize(
    ("changed", "told"),
    few(3, [
        ({"lr": 0.5}, ['lr of "optimizer"', "0.1", "0.5", "taken"]),
        ({"make": adamw(betas=(0.8, 0.9))}, ["betas", "(0.8, 0.9)", "taken"]),
        ({"make": adamw(weight_decay=0.3)}, ["weight_decay", "0.3", "taken"]),
        ({"make": adamw(amsgrad=True)}, ["amsgrad", "not taken"]),
        ({"max_epochs": 6}, ["max_epochs", "4", "6", "taken"]),
        ({"max_epochs": 1}, ["max_epochs", "taken: the run is over, at 1 epochs"]),
        ({"max_steps": 20}, ["max_steps", "None", "20", "taken"]),
        ({"precision": "bf16"}, ["precision", "fp32", "bf16", "taken"]),
        ({"accumulate": 2}, ['accumulate of "optimizer"', "1", "2", "taken"]),
        ({"clip_norm": 1.0}, ['clip_norm of "optimizer"', "None", "1.0", "taken"]),
        ({"drop_last": True}, ['drop_last of "train"', "False", "True", "taken"]),
        ({"workers": 1}, ['num_workers of "train"', "0", "1", "the batches are the same"]),
        ({"average": True}, ['model "ema"', "new", "begins here"]),
        ({"schedule": cosine}, ['schedule "schedule"', "new", "begins here"]),
    ]),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::truestep.loop.optim.schedulers.HorizonWarning")
def test_what_can_be_taken_is_said_in_a_table(tmp_path, capsys, changed, told):
    train(tmp_path, stop=10)
    train(tmp_path, **changed)
    lines = said(capsys)
    assert "step-000009, step 9, epoch 1, with changes" in lines[0]
    assert len(lines) == 3, "one row"
    assert all(part in lines[2] for part in told), lines[2]
    assert lines[2].count(told[-1]) == 1


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"batch": 4}, r'batch_size of "train" was 2 and is 4(.|\n)*a pass is under way'),
        ({"size": 24}, r'data length of "train" was 16 and is 24'),
        ({"shuffle": False}, r'shuffle of "train" was True and is False'),
        ({"seed": 3}, r'seed was 2 and is 3(.|\n)*the pass over "train" is in another order'),
        ({"make": lambda m: SGD(m.parameters(), lr=0.1)}, r'the class of "optimizer" was AdamW and is SGD'),
        ({"schedule": lambda o: STEPS.StepLR(o, 5)}, r'the kind of "schedule" was warmup_cosine and is StepLR'),
    ],
)
def test_what_means_nothing_is_refused_and_nothing_changed(tmp_path, changed, error):
    with_schedule = {"schedule": cosine} if "schedule" in changed else {}
    train(tmp_path, stop=10, **with_schedule)
    before = sorted((path.name, path.stat().st_size) for path in tmp_path.rglob("step-*/*"))
    with pytest.raises(BadCheckpoint, match=error):
        train(tmp_path, **changed)
    assert sorted((path.name, path.stat().st_size) for path in tmp_path.rglob("step-*/*")) == before


def test_another_width_is_refused_with_a_way_out(tmp_path):
    train(tmp_path, stop=10)
    with pytest.raises(KeysDoNotMatch, match=r"step-000009 matches the model(.|\n)*partial=True\) before run\.model"):
        train(tmp_path, width=3)


@pytest.mark.parametrize("changed", [{"batch": 4}, {"size": 24}, {"seed": 3}, {"shuffle": False}])
def test_between_two_epochs_the_data_may_change(tmp_path, capsys, changed):
    train(tmp_path, stop=1, at_end=True)
    rates, _, _ = train(tmp_path, at_end=True, **changed)
    assert len(rates) == 3 * changed.get("size", 16) // changed.get("batch", 2)
    assert "taken" in said(capsys)[2]


def test_data_that_are_read_in_their_order_may_grow(tmp_path, capsys):
    train(tmp_path, stop=10, shuffle=False)
    rates, _, _ = train(tmp_path, shuffle=False, size=24)
    assert len(rates) == 3 * 12 - 1, "one batch of the second epoch was done"
    assert "taken" in said(capsys)[2]


class TestLearningRates:
    def test_without_a_schedule_the_new_one_is_taken(self, tmp_path):
        train(tmp_path, stop=10)
        assert train(tmp_path, lr=0.5)[0] == [0.5] * 23

    def test_one_that_the_loop_changed_goes_on(self, tmp_path):
        train(tmp_path, stop=10, schedule=lambda o: STEPS.StepLR(o, 2, gamma=0.5))
        rates = train(tmp_path, schedule=lambda o: STEPS.StepLR(o, 2, gamma=0.5))[0]
        assert rates[0] == 0.1 * 0.5**4

    @pytest.mark.parametrize("kind", [cosine, lambda o: STEPS.StepLR(o, 2, gamma=0.5),
                                      lambda o: STEPS.CosineAnnealingLR(o, 32)])  # fmt: skip
    def test_a_schedule_goes_on_at_another_height(self, tmp_path, kind):
        whole = train(tmp_path / "whole", schedule=kind)[0]
        train(tmp_path / "run", stop=10, schedule=kind)
        rates = train(tmp_path / "run", schedule=kind, lr=0.2)[0]
        assert rates == pytest.approx([2 * rate for rate in whole[9:]])

    def test_more_epochs_stretch_a_schedule_from_the_next_update_on(self, tmp_path):
        whole = train(tmp_path / "whole", schedule=cosine, max_epochs=4)[0]
        for stop, at_end in ((10, False), (None, True)):
            out = tmp_path / f"{at_end}"
            train(out, stop=stop, at_end=at_end, schedule=cosine, max_epochs=2)
            rates = train(out, at_end=at_end, schedule=cosine)[0]
            assert rates == whole[-len(rates) :]

    def test_the_arguments_of_a_schedule_are_taken(self, tmp_path, capsys):
        train(tmp_path, stop=10, schedule=lambda o: STEPS.StepLR(o, 100))
        rates = train(tmp_path, schedule=lambda o: STEPS.StepLR(o, 12))[0]
        assert rates[:4] == [0.1, 0.1, 0.1, pytest.approx(0.01)]
        assert 'step_size of "schedule"  100  12  taken' in said(capsys)[2]

    def test_a_change_outlives_the_next_kill(self, tmp_path):
        train(tmp_path, stop=10)
        train(tmp_path, stop=11, lr=0.5)
        train(tmp_path, stop=20, lr=0.5)
        assert train(tmp_path, lr=0.5)[0][0] == 0.5


class TestPhases:
    """A second phase with other parts is the same over kills."""

    def phases(self, out, stops=(), save=3):
        weights = None
        for stop in (*stops, None):
            weights = self.once(out, stop, save)
        return weights

    def once(self, out, stop, save):
        run = Run(out=out, device="cpu", watch=False, progress=False, resume="auto", max_epochs=4, accumulate=2,
                  save_every_n_steps=save)  # fmt: skip
        with run:
            model = run.model(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)))
            optimizer = run.optimizer(SGD(model.parameters(), lr=0.1))
            run.scheduler(cosine(optimizer))
            ema = None
            loader = run.loader(data(16), batch_size=2, shuffle=True)
            rates = []
            for epoch in run.epochs():
                if epoch >= 2 and ema is None:
                    run.drop(optimizer)
                    optimizer = run.optimizer(torch.optim.Adam(model.parameters(), lr=0.05))
                    run.scheduler(cosine(optimizer))
                    ema = run.ema(model, 0.5)
                for x, y in run.train(loader, model):
                    if run.global_step == stop:
                        run.discard()
                        return None
                    if run.step((model(x) - y).square().mean()):
                        rates.append(optimizer.param_groups[0]["lr"])
        return rates, [value.tolist() for value in model.parameters()], [v.tolist() for v in ema.model.parameters()]

    @pytest.mark.parametrize("stops", [(5,), (9,), (10,), pytest.param((5, 10, 13), marks=pytest.mark.program)])
    def test_over_kills(self, tmp_path, stops, capsys):
        whole = self.phases(tmp_path / "whole")
        assert whole[0][-1] == 0.0, "the schedule of the second phase ends with the run"
        got = self.phases(tmp_path / "run", stops)
        assert got[1:] == whole[1:]
        assert got[0] == whole[0][-len(got[0]) :]
        assert not [line for line in said(capsys) if "changes" in line]

    def test_a_phase_that_a_resumed_program_leaves_out_is_refused(self, tmp_path):
        self.once(tmp_path, 10, 3)
        run = Run(out=tmp_path, device="cpu", watch=False, progress=False, resume="auto", max_epochs=4)
        model = run.model(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)))
        optimizer = run.optimizer(SGD(model.parameters(), lr=0.1))
        run.scheduler(cosine(optimizer))
        loader = run.loader(data(16), batch_size=2, shuffle=True)
        with run, pytest.raises(BadCheckpoint, match=r"models \['ema', 'model'\], got \['model'\](.|\n)*earlier epoch"):
            for _ in run.epochs():
                next(run.train(loader))

    def test_parts_added_at_a_resume_go_on_over_kills(self, tmp_path):
        train(tmp_path / "whole", stop=10)
        train(tmp_path / "run", stop=10)
        extra = {"schedule": cosine, "average": True}
        rates, *whole = train(tmp_path / "whole", **extra)
        assert rates[0] == pytest.approx(0.1 / 4)
        assert min(rates) == rates[-1] < 0.001, "it ends with the run"
        train(tmp_path / "run", stop=17, **extra)
        again, *got = train(tmp_path / "run", **extra)
        assert got == whole
        assert again == rates[-len(again) :]

    def test_an_average_that_a_resumed_program_lets_go(self, tmp_path, capsys):
        train(tmp_path, stop=10, average=True)
        run = Run(out=tmp_path, device="cpu", watch=False, progress=False, resume="auto", max_epochs=4, seed=2)
        with run:
            model = run.model(nn.Linear(2, 1))
            run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.1))
            run.drop(run.ema(model, 0.5))
            loader = run.loader(data(16), batch_size=2, shuffle=True, name="train")
            for _ in run.epochs():
                for x, y in run.train(loader, model):
                    run.step((model(x) - y).square().mean())
                run.save()
        assert 'model "ema"  saved  -   dropped' in said(capsys)[2]


class TestDrop:
    def test_an_optimizer_goes_with_its_schedules_and_its_name(self):
        run = Run(device="cpu", watch=False, max_steps=4)
        model = run.model(nn.Linear(2, 1))
        first = run.optimizer(SGD(model.parameters(), lr=0.1))
        run.scheduler(STEPS.StepLR(first, 1))
        run.drop(first)
        second = run.optimizer(SGD(model.parameters(), lr=0.2))
        run.step(model(torch.ones(1, 2)).mean())
        assert (run.global_step, list(run._parts.updates), list(run._parts.schedules)) == (1, ["optimizer_2"], [])
        first.step()
        assert run.global_step == 1
        run.drop(second)
        run.optimizer(first)
        assert list(run._parts.updates) == ["optimizer_3"]

    def test_gradients_that_wait_are_not_lost(self):
        run = Run(device="cpu", watch=False, max_steps=4, accumulate=2)
        model = run.model(nn.Linear(2, 1))
        optimizer = run.optimizer(SGD(model.parameters(), lr=0.1))
        for _ in run.steps(1):
            run.backward(model(torch.ones(1, 2)).mean())
            with pytest.raises(OpenWindow, match=r"run\.discard\(\)"):
                run.drop(optimizer)
            run.discard()

    def test_what_is_not_of_the_run_is_an_error(self):
        with pytest.raises(BadPart, match="does not belong to the run"):
            Run(device="cpu", watch=False).drop(nn.Linear(2, 1))


class TestClasses:
    @pytest.mark.parametrize(("kind", "part"), [("model", nn.Linear), ("optimizer", SGD)])
    def test_a_class_is_no_part(self, kind, part):
        with pytest.raises(BadPart, match=rf"run\.{kind}\(\) was given the class {part.__name__}"):
            getattr(Run(device="cpu", watch=False), kind)(part)

    def test_a_text_is_no_norm(self):
        with pytest.raises(BadSettings, match=r"clip_norm must be .*, got '1\.0'"):
            Run(device="cpu", watch=False, clip_norm="1.0")
