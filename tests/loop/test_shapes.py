"""Bodies of every shape against the same loops in plain PyTorch, bit for bit: the unit is the update."""

import json

import pytest
import torch
from torch import nn

from truestep.errors import OpenWindow, SplitWindow
from truestep.loop.run.run import Run

pytestmark = pytest.mark.filterwarnings("error")

ACCUMULATE = 4


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def samples(count, seed=1):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))


def loss_of(model, x):
    return (model(x) - x.sum(1, keepdim=True)).pow(2).mean()


def made(**settings):
    run = Run(**{"device": "cpu", "watch": False, "accumulate": ACCUMULATE, **settings})
    model = run.model(net())
    return run, model, run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


def by_hand(windows):
    """Train on the losses of each window, divided by how many there are."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for window in windows:
        for x in window:
            (loss_of(model, x) / ACCUMULATE).backward()
        for parameter in model.parameters():
            if len(window) != ACCUMULATE:
                parameter.grad.mul_(ACCUMULATE / len(window))
        optimizer.step()
        optimizer.zero_grad()
    return model


def windows_of(micro_batches):
    return [micro_batches[start : start + ACCUMULATE] for start in range(0, len(micro_batches), ACCUMULATE)]


def equal(a, b):
    return all(map(torch.equal, a.parameters(), b.parameters()))


def test_a_loop_over_micro_steps_in_a_step_is_its_twin():
    run, model, _ = made(clip_norm=None)
    data = samples(40).split(1)
    closed = [run.step(loss_of(model, data[4 * step + k])) for step in run.steps(10) for k in range(4)]
    assert equal(model, by_hand(windows_of(data)))
    assert closed == [False, False, False, True] * 10
    assert run.global_step == 10


def test_one_micro_step_in_a_body_is_its_twin():
    run, model, _ = made()
    data = iter(samples(40).split(1))
    numbers = []
    for step in run.steps(10):
        run.step(loss_of(model, next(data)))
        numbers.append(step)
    assert equal(model, by_hand(windows_of(samples(40).split(1))))
    assert numbers == [number for number in range(10) for _ in range(4)]
    assert run.global_step == 10


@pytest.mark.parametrize("micro", [1, 4])
def test_max_steps_counts_updates_in_both_shapes(micro):
    run, model, _ = made(max_steps=5)
    for _ in run.steps():
        for _ in range(micro):
            run.step(loss_of(model, samples(2)))
    assert run.global_step == 5


def test_a_batch_cut_in_chunks_is_its_twin():
    run, model, _ = made(max_epochs=2)
    loader = run.loader(torch.utils.data.TensorDataset(samples(24)), batch_size=8)
    for _ in run.epochs():
        for (batch,) in run.train(loader, model):
            for chunk in batch.chunk(4):
                run.step(loss_of(model, chunk))
    assert equal(model, by_hand(windows_of(samples(24).split(2)) * 2))
    assert run.global_step == 6


def closed_windows(chunks_of, out=None, stop_after=None):
    """Train 3 epochs of 5 batches with 4 micro-steps in a window; return the results of `run.step`, batch by batch."""
    run, model, _ = made(max_epochs=3, **({"out": out, "resume": "auto", "save_every_n_steps": 1} if out else {}))
    loader = run.loader(torch.utils.data.TensorDataset(samples(20)), batch_size=4)
    returned = []
    for epoch in run.epochs():
        for number, (batch,) in enumerate(run.train(loader, model)):
            returned.append([run.step(loss_of(model, chunk)) for chunk in batch.chunk(chunks_of(epoch, number))])
            if len(returned) == stop_after:
                run.close()
                return returned
    run.close()
    return returned


def test_a_step_says_that_the_partial_window_at_the_end_of_a_loop_closed():
    assert closed_windows(lambda epoch, number: 1) == [[False], [False], [False], [True], [True]] * 3
    two = [[False, False], [False, True], [False, False], [False, True], [False, True]]
    assert closed_windows(lambda epoch, number: 2) == two * 3


def test_a_partial_window_of_uneven_bodies_closes_after_the_last_one():
    returned = closed_windows(lambda epoch, number: 2 if number == 1 else 1)
    assert [any(body) for body in returned] == [False, False, True, False, False] * 3


def test_a_resumed_run_says_the_same_of_its_last_window(tmp_path):
    closed_windows(lambda epoch, number: 1, tmp_path, stop_after=5)
    assert closed_windows(lambda epoch, number: 1, tmp_path)[0] == [True]


def test_two_losses_of_a_batch_are_two_micro_steps():
    run, model, _ = made(max_epochs=2)
    loader = run.loader(torch.utils.data.TensorDataset(samples(10)), batch_size=2)
    for _ in run.epochs():
        for (batch,) in run.train(loader, model):
            run.step(loss_of(model, batch))
            run.step(loss_of(model, 2 * batch))
    micro = [x for batch in samples(10).split(2) for x in (batch, 2 * batch)]
    assert equal(model, by_hand(windows_of(micro) * 2)), "of ten micro-steps, the last window holds two"
    assert run.global_step == 6


def test_a_partial_window_closes_once_at_the_end_of_the_outermost_loop():
    run, model, _ = made(max_epochs=1)
    outer = run.loader(range(3), batch_size=1, name="outer")
    loader = run.loader(torch.utils.data.TensorDataset(samples(6)), batch_size=2)
    for _ in run.train(outer):
        for (batch,) in run.train(loader, model):
            run.step(loss_of(model, batch))
    assert equal(model, by_hand(windows_of(samples(6).split(2) * 3)))
    assert run.global_step == 3


def test_a_step_may_take_several_bodies_of_uneven_length():
    run, model, _ = made()
    data = iter(samples(12).split(1))
    numbers = []
    for step in run.steps(3):
        numbers.append(step)
        for _ in range(3):
            run.step(loss_of(model, next(data)))
    assert equal(model, by_hand(windows_of(samples(12).split(1))))
    assert numbers == [0, 0, 1, 2]


def test_several_updates_in_a_body_are_its_twin():
    run, model, _ = made(accumulate=1)
    for step in run.steps(3):
        for k in range(5):
            run.step(loss_of(model, samples(2, seed=5 * step + k)))
        assert run.global_step == 5 * (step + 1)
    twin = net()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    for index in range(15):
        optimizer.zero_grad()
        loss_of(twin, samples(2, seed=index)).backward()
        optimizer.step()
    assert equal(model, twin)


def test_what_would_be_a_step_after_the_last_is_dropped():
    run, model, _ = made(max_steps=2)
    data = samples(10).split(1)
    for step in run.steps():
        for x in data[5 * step : 5 * step + 5]:
            run.step(loss_of(model, x))
    assert run.global_step == 2
    assert equal(model, by_hand([data[:4], data[4:8]]))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_bodies_that_step_nothing_pass():
    run, model, _ = made(accumulate=1, max_steps=50)
    numbers = []
    for step in run.steps(6):
        numbers.append(step)
        if step >= 2 and step % 2 == 0:
            run.step(loss_of(model, samples(2)))
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert run.global_step == 2
    assert list(run.steps(3)) == [0, 1, 2]


def test_every_loop_over_steps_ends():
    """A micro-step that is dropped, or skipped in the middle of a window, passes."""
    run, model, _ = made()
    bodies = 0
    for _ in run.steps(5):
        bodies += 1
        run.backward(loss_of(model, samples(2)))
        run.discard()
    assert bodies == 5
    bodies = 0
    for _ in run.steps(5):
        bodies += 1
        if bodies == 1:
            run.step(loss_of(model, samples(2)))
    assert bodies == 6
    assert run.global_step == 1, "the window closes with its two samples"


def test_a_step_updates_several_optimizers():
    run = Run(device="cpu", watch=False)
    models = [net(), net()]
    a, b = (run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1)) for model in models)
    steps = []
    for _ in run.steps(2):
        for _ in range(3):
            run.step(loss_of(models[0], samples(2)), optimizer=a)
        run.step(loss_of(models[1], samples(2)), optimizer=b)
        steps.append(run.global_step)
    assert steps == [3, 6]


def test_steps_by_hand_are_counted_for_every_optimizer():
    run = Run(device="cpu", watch=False)
    models = [net(), net()]
    a, b = (run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1)) for model in models)
    for index in range(6):
        if index % 3 == 2:
            run.step(loss_of(models[0], samples(2)), optimizer=a)
        run.step(loss_of(models[1], samples(2)), optimizer=b)
    assert run.global_step == 6


def test_checkpoints_are_not_jumped_over(tmp_path):
    """Three updates in a body, and a window of another optimizer that is open at most boundaries."""
    run = Run(out=tmp_path / "run", device="cpu", watch=False, save_every_n_steps=4, keep_last=99)
    models = [run.model(net()), run.model(net())]
    a = run.optimizer(torch.optim.SGD(models[0].parameters(), lr=0.1))
    b = run.optimizer(torch.optim.SGD(models[1].parameters(), lr=0.1), accumulate=2)
    for _ in run.steps(8):
        for _ in range(3):
            run.step(loss_of(models[0], samples(2)), optimizer=a)
        run.step(loss_of(models[1], samples(2)), optimizer=b)
    run.close()
    assert run.global_step == 24
    steps = [json.loads(path.read_text())["step"] for path in tmp_path.glob("run/checkpoints/step-*/manifest.json")]
    assert sorted(steps) == [6, 12, 18, 24]


def test_a_loop_left_inside_its_last_body_is_an_error():
    run, model, _ = made()
    for number, _ in zip(range(3), run.steps(1), strict=False):
        run.step(loss_of(model, samples(2)))
        if number == 2:
            break
    with pytest.raises(OpenWindow, match="3 of 4"):
        next(run.steps(1))


class Stopped(Exception):
    pass


def flat(out, *, stop_at=None):
    run, model, _ = made(out=out, resume="auto", save_every_n_steps=1)
    run.state.micro = run.state.get("micro", 0)
    numbers = []
    for step in run.steps(4):
        run.step(loss_of(model, samples(2, seed=run.state.micro)))
        run.state.micro += 1
        numbers.append(step)
        if run.state.micro == stop_at:
            break
    return run, model, numbers


def test_a_run_of_one_micro_step_a_body_resumes_at_the_last_whole_step(tmp_path):
    _, straight, _ = flat(tmp_path / "straight")
    stopped, _, _ = flat(tmp_path / "run", stop_at=10)
    stopped.discard()
    stopped.close()
    resumed, model, numbers = flat(tmp_path / "run")
    assert equal(model, straight)
    assert numbers == [2, 2, 2, 2, 3, 3, 3, 3]
    assert resumed.global_step == 4


def test_a_last_body_with_more_micro_steps_than_those_before_is_a_warning():
    with pytest.warns(SplitWindow, match="split into two updates"):
        closed_windows(lambda epoch, number: 2 if (epoch, number) == (0, 4) else 1)


def test_no_update_is_made_past_the_last_step():
    run, model, _ = made(max_steps=4, accumulate=2)
    loader = run.loader(torch.utils.data.TensorDataset(samples(9)), batch_size=3)
    for (batch,) in run.train(loader, model):
        for x in batch.split(1):
            run.step(loss_of(model, x))
    assert run.global_step == 4


def test_a_loss_of_one_optimizer_leaves_nothing_in_the_open_window_of_another():
    def trained(with_generator):
        run, critic, of_critic = made(accumulate=2)
        generator = run.model(nn.Linear(3, 3))
        of_generator = run.optimizer(torch.optim.SGD(generator.parameters(), lr=0.0), accumulate=1)
        run.step(loss_of(critic, samples(2)), optimizer=of_critic)
        if with_generator:
            run.step(10 * critic(generator(samples(2))).mean(), optimizer=of_generator)
        run.step(loss_of(critic, samples(2, seed=2)), optimizer=of_critic)
        return critic

    assert equal(trained(True), trained(False))
