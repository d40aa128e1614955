"""Model-agnostic meta-learning of sine waves with torch.func.

Each task is one wave (amplitude, phase, and its own noise). The network is adapted with a few gradient steps on the
support points of a task and is judged on its query points. Inner steps differ for each layer and are learned too.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import grad, grad_and_value, vmap

SHOTS, QUERIES, TASKS = 10, 15, 16
INNER_STEPS, EVAL_STEPS = 2, 5


class Tasks(NamedTuple):
    """A batch of tasks; the first axis counts tasks."""

    support_x: Tensor
    support_y: Tensor
    query_x: Tensor
    query_y: Tensor


def draw_tasks(n: int, gen: torch.Generator) -> Tasks:
    amplitude = 0.5 + 4.0 * torch.rand(n, 1, 1, generator=gen)
    phase = torch.pi * torch.rand(n, 1, 1, generator=gen)
    x = 10 * torch.rand(n, SHOTS + QUERIES, 1, generator=gen) - 5
    clean = amplitude * torch.sin(x - phase)
    noisy = clean + 0.1 * torch.randn(x.shape, generator=gen)
    return Tasks(x[:, :SHOTS], noisy[:, :SHOTS], x[:, SHOTS:], clean[:, SHOTS:])


def init(sizes: list[int], gen: torch.Generator) -> dict[str, Tensor]:
    params = {}
    for i, (n_in, n_out) in enumerate(zip(sizes, sizes[1:])):
        params[f"w{i}"] = torch.randn(n_in, n_out, generator=gen) * (1.5 / n_in) ** 0.5
        params[f"b{i}"] = 0.1 * torch.randn(n_out, generator=gen)
    return params


def apply(params: dict[str, Tensor], x: Tensor) -> Tensor:
    depth = len(params) // 2
    h = x / 5.0
    for i in range(depth):
        h = h @ params[f"w{i}"] + params[f"b{i}"]
        if i < depth - 1:
            h = torch.tanh(h) if i == 0 else torch.nn.functional.gelu(h)
    return h


def mse(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    return ((apply(params, x) - y) ** 2).mean()


def adapt(params: dict[str, Tensor], log_rates: dict[str, Tensor], x: Tensor, y: Tensor, steps: int) -> dict:
    """The parameters after `steps` gradient steps on (x, y), as a function that can be differentiated."""
    fast = params
    for _ in range(steps):
        slope = grad(mse)(fast, x, y)
        fast = {name: fast[name] - log_rates[name].exp() * slope[name] for name in fast}
    return fast


def task_loss(meta: tuple[dict, dict], task: Tasks) -> Tensor:
    params, log_rates = meta
    fast = adapt(params, log_rates, task.support_x, task.support_y, INNER_STEPS)
    return mse(fast, task.query_x, task.query_y)


def meta_loss(meta: tuple[dict, dict], tasks: Tasks) -> Tensor:
    return vmap(task_loss, in_dims=(None, 0))(meta, tasks).mean()


class AdamState(NamedTuple):
    """First and second moments of one dictionary of parameters."""

    count: int
    m: dict[str, Tensor]
    v: dict[str, Tensor]


def adam_init(params: dict[str, Tensor]) -> AdamState:
    zeros = {name: torch.zeros_like(p) for name, p in params.items()}
    return AdamState(0, zeros, dict(zeros))


def adam_update(params, grads, state, lr, b1=0.9, b2=0.999, eps=1e-8):
    count = state.count + 1
    m = {k: b1 * state.m[k] + (1 - b1) * grads[k] for k in params}
    v = {k: b2 * state.v[k] + (1 - b2) * grads[k] ** 2 for k in params}
    new = {}
    for k in params:
        m_hat = m[k] / (1 - b1**count)
        v_hat = v[k] / (1 - b2**count)
        new[k] = params[k] - lr * m_hat / (v_hat.sqrt() + eps)
    return new, AdamState(count, m, v)


def query_errors(params, log_rates, tasks: Tasks, steps: int) -> Tensor:
    """Mean squared error of each task after adaptation; no graph is kept."""

    def one(task):
        fast = adapt(params, log_rates, task.support_x, task.support_y, steps)
        return mse(fast, task.query_x, task.query_y)

    with torch.no_grad():
        return vmap(one)(tasks)


def main() -> None:
    gen = torch.Generator().manual_seed(5)
    params = init([1, 40, 40, 1], gen)
    log_rates = {name: torch.tensor(0.02).log() for name in params}
    val_tasks = draw_tasks(200, torch.Generator().manual_seed(100))
    test_tasks = draw_tasks(400, torch.Generator().manual_seed(200))

    state, rate_state = adam_init(params), adam_init(log_rates)
    best, kept, iterations = float("inf"), None, 420
    for it in range(iterations):
        lr = 5e-3 * min(1.0, (it + 1) / 50) * (0.1 if it > 0.75 * iterations else 1.0)
        tasks = draw_tasks(TASKS, gen)
        (grads, rate_grads), loss = grad_and_value(meta_loss)((params, log_rates), tasks)
        params, state = adam_update(params, grads, state, lr)
        log_rates, rate_state = adam_update(log_rates, rate_grads, rate_state, lr)
        if (it + 1) % 60 == 0:
            val = query_errors(params, log_rates, val_tasks, EVAL_STEPS).mean().item()
            print(f"iteration {it + 1:5d} meta loss {loss.item():.4f} val after {EVAL_STEPS} steps {val:.4f}")
            if val < best:
                best, kept = val, (params, log_rates)

    params, log_rates = kept
    print("inner rates", {name: round(rate.exp().item(), 4) for name, rate in log_rates.items()})
    for steps in (0, 1, 2, EVAL_STEPS):
        errors = query_errors(params, log_rates, test_tasks, steps)
        half_width = 1.96 * errors.std() / len(errors) ** 0.5
        print(f"test, {steps} steps: mse {errors.mean():.5f} +- {half_width:.5f} median {errors.median():.5f}")


if __name__ == "__main__":
    main()
