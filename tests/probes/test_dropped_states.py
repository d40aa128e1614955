"""States of recurrent models that a loop drops, and calls from one state on purpose."""

import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from truestep.events import ValueUnread
from truestep.testing import capture_events

State = Any


class Decoder(nn.Module):
    """A recurrent model of tokens, or of rows of numbers, whose state can be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.gru, self.out = nn.Embedding(6, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 6)
        self.back = nn.Linear(6, 8)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        rows = self.back(x) if x.is_floating_point() else self.embed(x)
        states, hidden = self.gru(rows if rows.dim() == 3 else rows[:, None], hidden)
        return self.out(states)[:, -1], hidden


class Cell(nn.Module):
    """A recurrent model without a recurrent layer of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.out = nn.Linear(6 + 16, 16), nn.Linear(16, 6)

    def forward(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.tanh(self.step(torch.cat([x, hidden], 1)))
        return self.out(hidden), hidden


class Remembering(Decoder):
    """A model that also keeps its state itself."""

    memory: Tensor | None = None

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        result, self.memory = super().forward(x, self.memory if hidden is None else hidden)
        return result, self.memory


class Attending(nn.Module):
    """A decoder that returns its weights, which have the form of its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(6, 16), nn.Linear(16, 6)

    def forward(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.softmax(self.embed(x), -1)[None] * torch.ones_like(hidden)
        return self.out((weights * hidden)[0]), weights


class Summary(Decoder):
    """A model with a second result that is not the next state."""

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        states, after = self.gru(self.embed(x)[:, None], hidden)
        return self.out(states)[:, -1], after


def start() -> tuple[Tensor, Tensor]:
    return torch.zeros(3, dtype=torch.long), torch.randn(1, 3, 16)


def states(loop: Any, model: nn.Module) -> list[tuple[str, int]]:
    """Run a loop without gradients; return the variable and the number of calls of each dropped state."""
    with capture_events() as events, torch.no_grad():
        loop(model)
    return [(one.name, one.size) for one in events if isinstance(one, ValueUnread) and one.kind == "state"]


# --- states that are dropped -----------------------------------------------------------------------------------------


def greedy(model: nn.Module) -> None:
    token, h = start()
    pieces = []
    for _ in range(6):
        logits, _ = model(token, h)
        token = logits.argmax(-1)
        pieces.append(token)


def sampled_from_tokens(model: nn.Module) -> None:
    token, h = start()
    tokens = token[:, None]
    while tokens.shape[1] < 7:
        logits, new_state = model(token, hidden=h)  # noqa: RUF059
        token = torch.multinomial(logits.softmax(-1), 1)[:, 0]
        tokens = torch.cat([tokens, token[:, None]], 1)


def without_a_state(model: nn.Module) -> None:
    token, _ = start()
    text = torch.zeros(3, 6)
    for t in range(6):
        logits, _state = model(token)
        best = logits.argmax(-1)
        text[:, t] = best
        token = best


def forecast(model: nn.Module) -> None:
    x, h = torch.randn(3, 6), torch.randn(1, 3, 16)
    found = []
    for _ in range(6):
        y, _ = model(x, h)
        found.append(y)
        x = y


def letters(model: nn.Module) -> None:
    line, hidden = torch.randn(6, 1, 6), torch.zeros(1, 16)
    for i in range(6):
        output, _ = model(line[i], hidden)
    print(output)


@pytest.mark.parametrize(
    ("loop", "model", "name"),
    [
        (greedy, Decoder, "h"),
        (sampled_from_tokens, Decoder, "h"),
        (forecast, Decoder, "h"),
        (letters, Cell, "hidden"),
    ],
)
def test_a_state_that_a_loop_drops_is_found_at_its_fourth_call(loop: Any, model: type[nn.Module], name: str) -> None:
    assert states(loop, model()) == [(name, 4)]


class Translator(nn.Module):
    def __init__(self, *, carries: bool) -> None:
        super().__init__()
        self.decoder, self.carries = Decoder(), carries

    def forward(self, target: Tensor, hidden: Tensor) -> Tensor:
        outputs, token = torch.zeros(6, 3, 6), target[0]
        if self.carries:
            for t in range(6):
                output, hidden = self.decoder(token, hidden)
                outputs[t] = output
                token = target[t] if random.random() < 0.5 else output.argmax(1)
            return outputs
        for t in range(6):
            output, _ = self.decoder(token, hidden)
            outputs[t] = output
            token = target[t] if random.random() < 0.5 else output.argmax(1)
        return outputs


@pytest.mark.parametrize("carries", [True, False])
def test_a_loop_inside_of_a_model_is_read_in_training(carries: bool) -> None:
    model, target = Translator(carries=carries), torch.randint(0, 6, (6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(2):
            optimizer.zero_grad()
            model(target, torch.zeros(1, 3, 16)).square().mean().backward()
            optimizer.step()
    found = [one.name for one in events if isinstance(one, ValueUnread) and one.kind == "state"]
    assert found == ([] if carries else ["hidden"])


# --- calls from one state on purpose ---------------------------------------------------------------------------------


def carried(model: nn.Module) -> None:
    token, h = start()
    pieces = []
    for _ in range(6):
        logits, h = model(token, h)
        token = logits.argmax(-1)
        pieces.append(token)


def carried_by_another_name(model: nn.Module) -> None:
    token, h = start()
    pieces = []
    for _ in range(6):
        logits, after = model(token, h)
        token, h = logits.argmax(-1), after
        pieces.append(token)


def candidates(model: nn.Module) -> None:
    _, h = start()
    scores = []
    for one in range(6):
        logits, _ = model(torch.full((3,), one), h)
        scores.append(logits.max())


def samples(model: nn.Module) -> None:
    h, right = torch.zeros(1, 1, 16), 0
    for x in torch.randint(0, 6, (8, 1)):
        logits, _ = model(x, h)
        right += int(logits.argmax() == x)


def windows(model: nn.Module) -> None:
    h, tokens = torch.zeros(1, 1, 16), [1, 2, 3]
    for _ in range(6):
        window = torch.tensor(tokens[-3:])[None]
        logits, _ = model(window, h)
        token = logits.argmax(-1).item()
        tokens.append(token)


def whole_prefix(model: nn.Module) -> None:
    tokens = torch.zeros(1, 1, dtype=torch.long)
    for _ in range(6):
        logits, _ = model(tokens)
        token = logits.argmax(-1)
        tokens = torch.cat([tokens, token[:, None]], 1)


class Bandit:
    def step(self, action: Tensor) -> tuple[Tensor, float]:
        return torch.randint(0, 6, (3,)), float(action[0])


def episodes_of_one_step(model: nn.Module) -> None:
    seen, h = start()
    env, rewards = Bandit(), []
    for _ in range(6):
        logits, _ = model(seen, h)
        action = logits.argmax(-1)
        seen, reward = env.step(action)
        rewards.append(reward)


def plan(model: nn.Module) -> None:
    action, h = torch.zeros(3, 6), torch.zeros(1, 3, 16)
    trace = []
    for _ in range(6):
        logits, _ = model(action, h)
        action = action + 0.1 * logits
        trace.append(action)


def last_batch(model: nn.Module) -> None:
    h, loader = torch.zeros(1, 3, 16), torch.randint(0, 6, (6, 3)).unbind(0)
    for x in loader:
        logits, _ = model(x, h)
    print(logits.shape)


def same_input(model: nn.Module) -> None:
    token, h = start()
    for t in range(6):
        logits, _ = model(token if t < 9 else token[t], h)
    print(logits.shape)


def kept(model: nn.Module) -> None:
    token, h = start()
    pieces, seen = [], []
    for _ in range(6):
        logits, state = model(token, h)
        token = logits.argmax(-1)
        pieces.append(token)
        seen.append(state)


def three_calls(model: nn.Module) -> None:
    token, h = start()
    pieces = []
    for _ in range(3):
        logits, _ = model(token, h)
        token = logits.argmax(-1)
        pieces.append(token)


def written_in_place(model: nn.Module) -> None:
    token, h = start()
    pieces = []
    for _ in range(6):
        logits, _ = model(token, h)
        token = logits.argmax(-1)
        h.mul_(0.9)
        pieces.append(token)


@pytest.mark.parametrize(
    ("loop", "model"),
    [
        (carried, Decoder),
        (carried_by_another_name, Decoder),
        (candidates, Decoder),
        (samples, Decoder),
        (windows, Decoder),
        (whole_prefix, Decoder),
        (episodes_of_one_step, Decoder),
        (plan, Decoder),
        (last_batch, Decoder),
        (same_input, Decoder),
        (kept, Decoder),
        (three_calls, Decoder),
        (written_in_place, Decoder),
        (without_a_state, Decoder),
        (without_a_state, Remembering),
        (greedy, Summary),
        (greedy, Attending),
    ],
)
def test_calls_from_one_state_on_purpose_are_not(loop: Any, model: type[nn.Module]) -> None:
    assert states(loop, model()) == []
