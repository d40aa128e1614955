"""The state of gradients, by every way people clear, scale and set them."""

from collections.abc import Callable

import pytest
import torch
from tiers import few
from torch import nn

from truestep.events import BackwardEnded, Event, GradientsZeroed, HandStepped, MixtureMeasured, OptimizerStepped
from truestep.testing import capture_events

X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def loss(model: nn.Module) -> torch.Tensor:
    return model(X).pow(2).mean()


def steps(events: list[Event]) -> list[OptimizerStepped]:
    return [event for event in events if isinstance(event, OptimizerStepped)]


def _replaced(model: nn.Module) -> None:
    for p in model.parameters():
        p.grad = torch.zeros_like(p)


CLEARINGS: dict[str, Callable[[nn.Module, torch.optim.Optimizer], object]] = {
    "optimizer.zero_grad": lambda m, o: o.zero_grad(),
    "optimizer.zero_grad to zeros": lambda m, o: o.zero_grad(set_to_none=False),
    "model.zero_grad": lambda m, o: m.zero_grad(),
    "grad = None": lambda m, o: [setattr(p, "grad", None) for p in m.parameters()],
    "grad.zero_": lambda m, o: [p.grad.zero_() for p in m.parameters()],
    "grad.data.zero_": lambda m, o: [p.grad.data.zero_() for p in m.parameters()],
    "grad.detach().zero_": lambda m, o: [p.grad.detach().zero_() for p in m.parameters()],
    "grad.fill_": lambda m, o: [p.grad.fill_(0) for p in m.parameters()],
    "grad *= 0": lambda m, o: [p.grad.mul_(0) for p in m.parameters()],
    "numpy": lambda m, o: [p.grad.numpy().fill(0) for p in m.parameters()],
    "set_": lambda m, o: [p.grad.set_(torch.zeros_like(p)) for p in m.parameters()],
    "grad.data = zeros": lambda m, o: [setattr(p.grad, "data", torch.zeros_like(p)) for p in m.parameters()],
    "grad = zeros": lambda m, o: _replaced(m),
    "foreach": lambda m, o: torch._foreach_zero_([p.grad for p in m.parameters()]),
}


@pytest.mark.parametrize("clear", few(3, CLEARINGS.values()), ids=CLEARINGS.keys())
@pytest.mark.parametrize("where", ["before backward", "after step"])
def test_every_way_of_clearing_is_seen(clear: Callable[..., object], where: str) -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for i in range(16):
            if where == "before backward" and i:
                clear(model, optimizer)
            loss(model).backward()
            optimizer.step()
            if where == "after step":
                clear(model, optimizer)
    assert len(steps(events)) == 16
    assert sum(step.mixed for step in steps(events)) == 0
    assert sum(step.reused for step in steps(events)) == 0


def test_missing_clear_is_seen_from_the_second_step_on_and_measured() -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 1e-6)
        for _ in range(12):
            loss(model).backward()
            optimizer.step()
    assert [bool(step.mixed) for step in steps(events)] == [False] + [True] * 11
    assert all(step.mixed == step.observed for step in steps(events)[1:])
    ratios = [event.ratio for event in events if isinstance(event, MixtureMeasured)]
    assert ratios == pytest.approx([2, 3, 4, 11], rel=0.01)


def test_a_clip_or_a_scale_does_not_count_as_clearing() -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(4):
            loss(model).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
    assert [bool(step.mixed) for step in steps(events)] == [False, True, True, True]


def test_textbook_gan_never_steps_on_mixed_gradients() -> None:
    with capture_events() as events:
        torch.manual_seed(0)
        generator, critic = nn.Linear(4, 2), nn.Linear(2, 1)
        opt_g, opt_d = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
        for _ in range(30):
            real, z = torch.randn(8, 2), torch.randn(8, 4)
            opt_d.zero_grad()
            (critic(generator(z).detach()).mean() - critic(real).mean()).backward()
            opt_d.step()
            opt_g.zero_grad()
            (-critic(generator(z)).mean()).backward()
            opt_g.step()
    assert len(steps(events)) == 60
    assert sum(step.mixed + step.reused + step.cleared for step in steps(events)) == 0
    assert any(event.onto_used for event in events if isinstance(event, BackwardEnded))


def test_gradients_set_by_hand_are_neither_reused_nor_mixed() -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(60):
            for parameter, grad in zip(model.parameters(), torch.autograd.grad(loss(model), list(model.parameters()))):
                parameter.grad = grad
            optimizer.step()
    assert sum(step.reused + step.mixed for step in steps(events)) == 0
    assert all(step.by_hand == step.observed for step in steps(events))


def test_a_step_without_a_new_backward_reuses_gradients() -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
        optimizer.step()
    first, second = steps(events)
    assert (first.fresh, first.reused) == (4, 0)
    assert (second.fresh, second.reused) == (0, 4)


def test_clearing_between_backward_and_step_is_seen_with_its_line() -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(8):
            loss(model).backward()
            optimizer.zero_grad()
            optimizer.step()
    zeroed = [event for event in events if isinstance(event, GradientsZeroed)]
    assert all(event.fresh == event.observed and event.site is not None for event in zeroed)
    assert all(step.cleared == step.observed for step in steps(events))


def test_accumulation_adds_to_fresh_gradients() -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            for _ in range(3):
                (loss(model) / 3).backward()
            optimizer.step()
            optimizer.zero_grad()
    backwards = [event for event in events if isinstance(event, BackwardEnded)]
    assert [bool(event.onto_fresh) for event in backwards] == [False, True, True] * 6
    assert all(event.divided and not event.onto_used for event in backwards)


def test_updates_by_hand_count_as_steps() -> None:
    with capture_events() as events:
        w = torch.zeros(4, 2, requires_grad=True)
        for _ in range(6):
            (X @ w - 1).pow(2).mean().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
    by_hand = [event for event in events if isinstance(event, HandStepped)]
    assert len(by_hand) == 6
    assert [event.mixed for event in by_hand] == [0, 1, 1, 1, 1, 1]


def test_a_last_backward_without_an_update_is_no_step_by_hand() -> None:
    with capture_events() as events:
        w = torch.zeros(4, 2, requires_grad=True)
        for i in range(6):
            (X @ w - 1).pow(2).mean().backward()
            if i < 5:
                with torch.no_grad():
                    w -= 0.1 * w.grad
    assert len([event for event in events if isinstance(event, HandStepped)]) == 5


def test_steps_of_an_optimizer_within_another_are_not_by_hand() -> None:
    with capture_events() as events:
        model = net()
        outer = torch.optim.Adam(model.parameters(), 1e-3)
        inner = torch.optim.SGD(outer.param_groups, lr=1e-2)
        for _ in range(60):
            inner.zero_grad()
            model(X).pow(2).mean().backward()
            inner.step()
    assert not any(isinstance(event, HandStepped) for event in events)


@pytest.mark.program
def test_a_load_into_a_target_with_gradients_is_no_update_by_hand() -> None:
    with capture_events() as events:
        online, target = net(), net()
        optimizer = torch.optim.SGD(online.parameters(), lr=1e-2)
        for _ in range(6):
            target.load_state_dict(online.state_dict())
            optimizer.zero_grad()
            (online(X) - 0.9 * target(X) - 1).pow(2).mean().backward()
            optimizer.step()
    assert not any(isinstance(event, HandStepped) for event in events)


def test_updates_by_hand_with_clearing_are_quiet() -> None:
    with capture_events() as events:
        w = torch.zeros(4, 2, requires_grad=True)
        for _ in range(6):
            (X @ w - 1).pow(2).mean().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
    assert not any(event.mixed for event in events if isinstance(event, HandStepped))


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"foreach": True}, {"maximize": True, "weight_decay": 0.1}])
def test_every_implementation_of_adam_is_seen_alike(options: dict[str, object]) -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3, **options)
        for i in range(12):
            if i < 6:
                optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
    assert [bool(step.mixed) for step in steps(events)] == [False] * 6 + [True] * 6


def test_nested_steps_are_one_step() -> None:
    class Wrapping(torch.optim.Optimizer):
        def __init__(self, parameters: object) -> None:
            super().__init__(parameters, {})
            self.base = torch.optim.SGD(self.param_groups, lr=0.1)

        def step(self, closure: object = None) -> None:
            self.base.step()

    with capture_events() as events:
        model = net()
        optimizer = Wrapping(model.parameters())
        for _ in range(5):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
    assert len(steps(events)) == 5


def test_a_closure_that_clears_is_quiet_and_one_that_does_not_is_mixed() -> None:
    def run(clears: bool) -> list[OptimizerStepped]:
        with capture_events() as events:
            model = net()
            optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

            def closure() -> torch.Tensor:
                if clears:
                    optimizer.zero_grad()
                value = loss(model)
                value.backward()
                return value

            for _ in range(4):
                optimizer.step(closure)
        return steps(events)

    assert sum(step.mixed for step in run(clears=True)) == 0
    assert sum(step.mixed for step in run(clears=False)) > 0


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("clears", [False, True])
def test_a_gradient_that_a_kept_graph_adds_out_of_place_is_mixed_unless_cleared(clears: bool) -> None:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(12):
            loss(model).backward(create_graph=True)
            optimizer.step()
            if clears:
                optimizer.zero_grad()
    seen = steps(events)
    assert [step.mixed for step in seen[1:]] == [0 if clears else step.observed for step in seen[1:]]
    for parameter in model.parameters():
        parameter.grad = None


def test_steps_after_one_that_raised_are_seen() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def out_of_memory() -> float:
        raise MemoryError

    with capture_events() as events:
        for index in range(4):
            optimizer.zero_grad()
            loss(model).backward()
            if index == 1:
                with pytest.raises(MemoryError):
                    optimizer.step(out_of_memory)
                continue
            optimizer.step()
    assert len(steps(events)) == 3


def test_parameters_that_never_get_a_gradient_do_not_make_steps_without_one() -> None:
    """Between sampled steps two parameters are examined, and those of the last layer have no gradient."""
    with capture_events() as events:
        model = nn.Sequential(nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(64):
            optimizer.zero_grad()
            model[0](X).pow(2).mean().backward()
            optimizer.step()
    assert all(step.fresh for step in steps(events))


def test_experts_in_turn_do_not_make_steps_without_a_gradient() -> None:
    with capture_events() as events:
        gate, experts = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 2) for _ in range(4))
        optimizer = torch.optim.SGD([*gate.parameters(), *experts.parameters()], 0.1)
        for step in range(80):
            optimizer.zero_grad()
            experts[step % 4](gate(X)).pow(2).mean().backward()
            optimizer.step()
    assert sum(not step.fresh for step in steps(events)) <= 1


def test_parts_with_tensors_of_their_own_count_their_steps_by_hand() -> None:
    def fit() -> None:
        weight = torch.zeros(4, 1, requires_grad=True)
        for _ in range(200):
            (X @ weight - 1).square().mean().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
                weight.grad.zero_()

    with capture_events() as events:
        fit()
        fit()
    assert sum(isinstance(event, HandStepped) for event in events) >= 396
