"""The purpose of each operation of a training loop, the failures if it is missing or misplaced, and their rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Duty:
    """An operation of a training loop."""

    does: str
    breaks: str
    """The failure without it, or at another place."""
    rules: tuple[str, ...] = ()


DUTIES: dict[str, Duty] = {
    "data": Duty(
        "supplies the batches of each pass",
        "without a new order in each pass, the gradients of neighbouring batches stay correlated; work in the loading "
        "makes the step wait",
        ("training-data-not-shuffled", "loader-starves-training"),
    ),
    "train mode": Duty(
        "turns dropout on, and lets batch normalisation use and update the statistics of batches",
        "after an evaluation without it, the training goes on in eval mode, without an error",
        ("train-mode-not-restored",),
    ),
    "eval mode": Duty(
        "turns dropout off, and lets batch normalisation use its running statistics",
        "without it, an evaluation is random, depends on the batch, and changes the running statistics",
        ("eval-mode-missing",),
    ),
    "clear": Duty(
        "clears the gradients that the last step used",
        "without it, each step follows the sum of all gradients so far; between the backward pass and the step, it "
        "clears the gradients that the step needs",
        ("missing-zero-grad", "zero-grad-before-step"),
    ),
    "forward": Duty(
        "computes the predictions, and records the graph for the backward pass",
        "without a graph, or with a part of it cut off, the parameters before the cut get no gradient",
        ("graph-cut", "training-without-grad"),
    ),
    "evaluation": Duty(
        "measures the model",
        "with gradients on, each call records a graph that nothing uses; in train mode, the result is random",
        ("no-grad-missing", "eval-mode-missing"),
    ),
    "loss": Duty(
        "reduces predictions and targets to the number that is minimised",
        "softmax in front of a loss that applies it, or targets that are broadcast, train another function",
        ("softmax-before-cross-entropy", "broadcast-target"),
    ),
    "backward": Duty(
        "adds the gradient of the loss to the `.grad` of each parameter",
        "without a step on them, gradients are computed and thrown away; twice before a step, their sum is used",
        ("backward-passes-discarded", "backward-without-step"),
    ),
    "unscale": Duty(
        "divides the gradients by the scale of the GradScaler",
        "without it, clipping compares scaled gradients with its limit",
        ("clip-before-unscale",),
    ),
    "clip": Duty(
        "limits the size of the gradients for the step that follows",
        "before the backward pass there is nothing to clip; after the step it is too late",
        ("clip-after-step", "clip-before-backward"),
    ),
    "step": Duty(
        "moves the parameters along their gradients",
        "without a backward pass before it, it repeats the last gradient or does nothing",
        ("step-without-backward", "parameters-not-optimized"),
    ),
    "schedule": Duty(
        "sets the learning rate of the steps that follow",
        "in the loop over batches instead of epochs, or the reverse, the rate falls too soon or never",
        ("scheduler-wrong-cadence", "scheduler-before-optimizer"),
    ),
    "optimizer": Duty(
        "holds the parameters that its steps move",
        "parameters that it does not hold, or that were replaced after it was built, are never trained",
        ("parameters-not-optimized", "optimizer-holds-stale-parameters"),
    ),
    "saved": Duty(
        "saves the state of the training",
        "without the states of optimizer and schedule, a resumed run is another run",
        ("checkpoint-incomplete",),
    ),
    "loaded": Duty(
        "restores saved values",
        "names that do not match leave layers at their random values",
        ("load-not-strict-silently", "state-not-loaded"),
    ),
    "seed": Duty(
        "makes the random numbers of the run repeatable",
        "in the loop, each step draws the same numbers again",
        ("seed-in-training-loop",),
    ),
}
"""Operation to its purpose, in the order of a loop."""
