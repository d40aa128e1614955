"""Honest verdicts: a rule is clear only where the run had the conditions under which the failure shows."""

import re
from pathlib import Path

import pytest

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Outcome, Verdict
from truestep.rules import Progress, all_rules, rule

ZERO, CALL, LOSS, BACKWARD, STEP = (Site("train.py", line) for line in (8, 9, 10, 11, 12))
EVAL, SCHEDULE, CLIP = Site("train.py", 20), Site("train.py", 13), Site("train.py", 14)
MET: list[Event] = [
    ev.ModelMet(model=1, name="net", parameters=(1, 2)),
    ev.ParameterMet(parameter=1, name="weight", shape=(2, 3), model=1),
    ev.ParameterMet(parameter=2, name="bias", shape=(2,), model=1),
    ev.OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1, 2)),
]
LOADER = [
    ev.LoaderMet(loader=1, name="train", dataset=1, batches=5, workers=0, sampler="random", site=Site("train.py", 3))
]
CALLED = ev.ModelCalled(model=1, site=CALL)
MADE = ev.BackwardEnded(site=BACKWARD, observed=2, written=2)
USED = ev.OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
NO_GRADIENT = ev.OptimizerStepped(optimizer=1, site=STEP, observed=2, absent_grad=2)
CLIPPED = ev.GradientsClipped(optimizer=1, site=CLIP, max_norm=1.0, given=2, observed=2, fresh=2)
EVALUATED = ev.ModelCalled(model=1, site=EVAL, training=False, grad=False, tracked=False, frozen_sensitive=True)
PLATEAU = ev.SchedulerBuilt(scheduler=1, optimizer=1, kind="ReduceLROnPlateau")
KEPT = ev.WeightsKept(name="score", loss=False, greater=True, value=0.5, site=EVAL)
RATE = ev.LearningRateRead(optimizer=1, rates=(0.1,))
COSINE = ev.SchedulerBuilt(scheduler=1, optimizer=1, kind="CosineAnnealingLR", horizon=10)


def step(kind: str = "mse_loss", loader: int | None = None, made_by: str = "", **more: object) -> list[Event]:
    """Return the events of one training step."""
    loss = ev.LossComputed(kind=kind, site=LOSS, made_by=made_by, input_from=made_by, **more)  # type: ignore[arg-type]
    return [
        ev.GradientsZeroed(optimizer=1, site=ZERO),
        ev.ModelCalled(model=1, site=CALL, loader=loader),
        loss,
        ev.TapeRead(site=BACKWARD, reached=(1, 2), forwarded=(1, 2)),
        ev.BackwardEnded(site=BACKWARD, observed=2, written=2, loader=loader),
        USED,
    ]


def verdict(id: str, events: list[Event], how: str = "finished") -> Verdict:
    judged, run = rule(id)(), Progress()
    for event in [*events, ev.RunEnded(how=how)]:
        run.note(event)
        if isinstance(event, ev.RunEnded):
            judged.ended(event, run)
        elif isinstance(event, judged.watches):
            judged.observe(event, run)
        run.advance(event)
    return judged.verdict(run)


def scheduled(**more: object) -> Event:
    return ev.SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1, **more)  # type: ignore[arg-type]


ONE, FEW, MANY = [*MET, *step()], [*MET, *step() * 2], [*MET, *step() * 300]
LOADED = [
    *MET,
    *LOADER,
    ev.LoaderStarted(loader=1),
    *[ev.BatchDrawn(loader=1), *step(loader=1)] * 5,
    ev.LoaderEnded(loader=1),
]
READ = [ev.LoaderMet(loader=2, name="val", dataset=2, batches=5), ev.BatchRead(loader=2, place=0, labelled=True)]
# Columns: the rule, the case, the events of the run, how it ended, the reason of the verdict.
TABLE: list[tuple[str, str, list[Event], str, str]] = [
    # Accumulation and clearing.
    ("accumulation-not-normalised", "each pass has a step", MANY, "finished", "no accumulation"),
    ("accumulation-window-dropped", "each pass has a step", LOADED, "finished", "no accumulation"),
    ("backward-passes-discarded", "2 steps", FEW, "finished", "fewer than 3 optimizer steps"),
    ("backward-without-step", "an error", MANY, "crashed", "the script did not run to its end"),
    (
        "backward-without-step",
        "no step, 2 passes",
        [*MET, CALLED, MADE, MADE],
        "finished",
        "fewer than 10 backward passes of one line",
    ),
    ("missing-zero-grad", "1 step", ONE, "finished", "fewer than 2 optimizer steps"),
    ("zero-grad-once-per-epoch", "1 step", ONE, "finished", "fewer than 2 optimizer steps"),
    ("zero-grad-before-step", "2 steps", FEW, "finished", "fewer than 3 optimizer steps"),
    ("step-without-backward", "2 steps", [*MET, *[CALLED, NO_GRADIENT] * 2], "finished", "too little evidence"),
    ("nan-or-inf", "no step", [*MET, CALLED, MADE], "finished", "no optimizer step"),
    # Clipping.
    ("clip-after-step", "no clip", MANY, "finished", "no gradient clipping"),
    ("clip-after-step", "no step", [*MET, MADE, CLIPPED], "finished", "no optimizer step"),
    ("clip-before-backward", "no step", [*MET, CLIPPED, MADE], "finished", "no optimizer step"),
    ("clip-wrong-parameters", "no step", [*MET, MADE, CLIPPED], "finished", "no optimizer step"),
    (
        "clip-wrong-parameters",
        "one of two gradients",
        [*MET, MADE, ev.GradientsClipped(optimizer=1, site=CLIP, max_norm=1.0, given=1, observed=1, unclipped=1), USED],
        "finished",
        "a part of the gradients was clipped, which can be meant",
    ),
    (
        "padding-in-loss",
        "an eighth of the targets",
        [*MANY, ev.PaddingRead(kind="cross_entropy", site=LOSS, index=0, share=12)],
        "finished",
        "less than a fifth of the targets are padding",
    ),
    (
        "train-validation-overlap",
        "training accuracy",
        [
            *MANY,
            ev.RowsEvaluated(
                model=1, table="x", samples=50, hits=50, inside=50, trained="x", rows=50, seen=50, site=EVAL
            ),
        ],
        "finished",
        "an evaluation on training samples, which can be meant",
    ),
    ("clip-before-unscale", "no scaler", [*MANY, CLIPPED], "finished", "no GradScaler"),
    ("scaler-misused", "no scaler", MANY, "finished", "no GradScaler"),
    (
        "scaler-skips-steps",
        "5 skipped steps",
        [*MET, *[MADE, ev.ScalerStepped(scaler=1, optimizer=1, skipped=True)] * 5],
        "finished",
        "too little evidence",
    ),
    # Evaluations.
    (
        "eval-mode-missing",
        "no evaluation",
        MANY,
        "finished",
        "no evaluation of a trained model with layers that depend on the mode",
    ),
    (
        "eval-mode-missing",
        "no dropout, no batch normalisation",
        [*MANY, *[ev.ModelCalled(model=1, site=EVAL, grad=False, tracked=False)] * 3],
        "finished",
        "no evaluation of a trained model with layers that depend on the mode",
    ),
    ("functional-dropout-always-on", "no evaluation", MANY, "finished", "no call of a trained model in eval mode"),
    ("functional-dropout-always-on", "an error", [*MANY, EVALUATED], "crashed", "the script did not run to its end"),
    (
        "no-grad-missing",
        "evaluated before training",
        [*MET, EVALUATED, *MANY],
        "finished",
        "no evaluation of a trained model",
    ),
    (
        "train-mode-not-restored",
        "evaluated once, last",
        [*MANY, ev.ModeSet(model=1, training=False), EVALUATED],
        "finished",
        "no training after an evaluation in eval mode",
    ),
    # Losses.
    ("softmax-before-cross-entropy", "mean squared error", MANY, "finished", "no cross entropy with gradients"),
    (
        "softmax-before-cross-entropy",
        "once",
        [*MET, *step("cross_entropy", made_by="SoftmaxBackward0", sums_to_one=True, classes=3)],
        "finished",
        "too little evidence",
    ),
    (
        "sigmoid-before-bce-with-logits",
        "mean squared error",
        MANY,
        "finished",
        "no binary cross entropy with logits with gradients",
    ),
    (
        "sigmoid-before-bce-with-logits",
        "once",
        [*MET, *step("binary_cross_entropy_with_logits", made_by="SigmoidBackward0")],
        "finished",
        "too little evidence",
    ),
    (
        "logits-into-probability-loss",
        "mean squared error",
        MANY,
        "finished",
        "no NLL loss, KL divergence, CTC loss or overlap of scores with gradients",
    ),
    (
        "activation-clamps-output",
        "a custom loss",
        [*MET, *step("cosine_embedding_loss") * 5],
        "finished",
        "no loss on logits or on values with gradients",
    ),
    (
        "activation-clamps-output",
        "once",
        [*MET, *step("binary_cross_entropy_with_logits", made_by="ReluBackward0")],
        "finished",
        "too little evidence",
    ),
    (
        "loss-never-differentiated",
        "no loss function of torch",
        MANY,
        "finished",
        "no loss function of torch.nn with gradients at two sampled steps",
    ),
    ("sum-overwritten", "no loop", MANY, "finished", "no model call in a loop"),
    (
        "metric-off-target",
        "no comparison",
        MANY,
        "finished",
        "no comparison of results with targets that could be repeated",
    ),
    ("layers-without-activation", "no readable tape", [*MET, MADE, USED], "finished", "no readable autograd tape"),
    ("loss-without-parameters", "2 steps", FEW, "finished", "fewer than 3 optimizer steps"),
    (
        "batch-changes-output",
        "no copy",
        [*MET, *step()],
        "finished",
        "no call of a model repeated on a copy",
    ),
    (
        "padding-changes-output",
        "no padding",
        [*MET, *step()],
        "finished",
        "no batch with padding of different lengths",
    ),
    (
        "padding-in-loss",
        "1 look",
        [*MET, ev.PaddingRead(kind="cross_entropy", site=LOSS, share=80)],
        "finished",
        "too little evidence",
    ),
    # Parameters and layers.
    ("batchnorm-without-statistics", "no step", [*MET, CALLED, MADE], "finished", "fewer than 1 optimizer steps"),
    ("frozen-statistics-move", "no layer in train mode", MANY, "finished", "no batch normalisation in train mode"),
    (
        "average-with-wrong-shares",
        "no average",
        MANY,
        "finished",
        "no average that was updated between two sampled steps",
    ),
    ("reference-is-the-model", "2 steps", FEW, "finished", "fewer than 3 optimizer steps"),
    (
        "parameters-without-effect",
        "an error",
        [*MANY, ev.ParametersUnchanged(parameters=(), moved=(1, 2), steps=300)],
        "crashed",
        "the script did not run to its end",
    ),
    ("sample-without-gradient", "no backward", MET, "finished", "no readable autograd tape"),
    ("graph-cut", "2 steps", FEW, "finished", "fewer than 3 optimizer steps"),
    ("optimizer-holds-stale-parameters", "2 steps", FEW, "finished", "fewer than 3 optimizer steps"),
    ("parameters-not-optimized", "2 steps", FEW, "finished", "fewer than 10 optimizer steps"),
    (
        "untrained-weights",
        "one network, trained",
        [*MANY, ev.ParametersUnchanged(parameters=(), moved=(1, 2), steps=10)],
        "finished",
        "no frozen part, and no second network",
    ),
    ("layer-created-in-forward", "1 call", ONE, "finished", "fewer than two model calls"),
    ("layers-in-plain-container", "1 step", ONE, "finished", "fewer than 2 optimizer steps"),
    (
        "output-ignores-input",
        "2 steps",
        FEW,
        "finished",
        "no batch of four or more samples for a model that returns one tensor",
    ),
    (
        "frozen-parameter-moves",
        "moved once",
        [*MET, ev.FrozenStepped(optimizer=1, site=STEP, used=(1,))],
        "finished",
        "too little evidence",
    ),
    (
        "batchnorm-tiny-batch",
        "1 look",
        [*MET, ev.BatchStatisticsTaken(model=1, values=2, layers=1), MADE, USED],
        "finished",
        "too little evidence",
    ),
    (
        "update-rounds-to-zero",
        "1 look",
        [*MET, ev.UpdateRounded(optimizer=1, site=STEP, changed=0.0, lr=1e-3, dtype="bfloat16")],
        "finished",
        "too little evidence",
    ),
    ("update-exceeds-weights", "no update measured", MANY, "finished", "no loss of one value"),
    # Schedules.
    ("learning-rate-off-course", "no rate read", MANY, "finished", "no learning rate that is a number"),
    ("lambda-returns-rate", "no schedule", [*MANY, RATE], "finished", "no step of a LambdaLR"),
    ("learning-rate-dead", "no rate read", MANY, "finished", "no learning rate that is a number"),
    (
        "learning-rate-dead",
        "an error",
        [*MET, COSINE, RATE, *step() * 20],
        "crashed",
        "the script did not run to its end",
    ),
    (
        "learning-rate-dead",
        "2 steps at 0",
        [*MET, ev.SchedulerBuilt(scheduler=1, optimizer=1, kind="LambdaLR", at_zero=True), *step() * 2],
        "finished",
        "too little evidence",
    ),
    (
        "scheduler-before-optimizer",
        "a plateau",
        [*MET, PLATEAU, *[*step(), scheduled(metric="float")] * 9],
        "finished",
        "no step of a schedule without a metric",
    ),
    (
        "scheduler-wrong-cadence",
        "a plateau",
        [*MET, PLATEAU, *[*step(), scheduled(metric="float")] * 9],
        "finished",
        "no schedule that depends on its number of steps",
    ),
    (
        "scheduler-wrong-cadence",
        "an error",
        [*MET, COSINE, *[*step(), scheduled()] * 9],
        "crashed",
        "the script did not run to its end",
    ),
    (
        "plateau-without-metric",
        "another schedule",
        [*MET, COSINE, *[*step(), scheduled()] * 9],
        "finished",
        "no step of a ReduceLROnPlateau",
    ),
    # Data.
    (
        "loader-starves-training",
        "batches without a loader",
        [*LOADER, ev.LoaderStarted(loader=1), ev.BatchDrawn(loader=1), *MANY],
        "finished",
        "no training on batches of a DataLoader",
    ),
    ("loader-starves-training", "an error", LOADED, "crashed", "the script did not run to its end"),
    (
        "training-data-not-shuffled",
        "the only loader evaluates",
        [*MANY, *READ],
        "finished",
        "no training on batches of a DataLoader",
    ),
    ("workers-respawned", "no workers", LOADED, "finished", "no training on a DataLoader with workers"),
    (
        "samples-all-equal",
        "1 batch",
        [*MET, *LOADER, ev.BatchRead(loader=1, place=0, alike=True)],
        "finished",
        "too little evidence",
    ),
    (
        "embedding-reads-wrong-rows",
        "2 steps",
        [*MET, *[ev.EmbeddingRead(model=1, name="places", rows=32, length=16, row=0, positions=True)] * 2],
        "finished",
        "too little evidence",
    ),
    (
        "embedding-rows-untrained",
        "the first pass",
        [*MET, ev.EmbeddingEvaluated(model=1, name="words", rows=99, reads=99, untrained=50, different=30, fresh=0.5)],
        "finished",
        "the training still met new rows of embeddings",
    ),
    (
        "batch-parts-equal",
        "2 steps",
        [*MET, *[ev.PartsCompared(model=1, one="x", other="y", site=LOSS)] * 2],
        "finished",
        "too little evidence",
    ),
    (
        "evaluation-on-other-classes",
        "no column of labels",
        MANY,
        "finished",
        "no labels of a training and an evaluation in columns that variables hold",
    ),
    (
        "outputs-without-effect",
        "2 steps",
        [*step(), ev.ResultDifferentiated(model=1), *step()],
        "finished",
        "fewer than 20 optimizer steps",
    ),
    (
        "labels-all-equal",
        "few labels",
        [*MANY, ev.LabelsCounted(kind="cross_entropy", classes=3, labels=64, rows=64, only=0.0)],
        "finished",
        "too little evidence",
    ),
    ("labels-not-signs", "no such loss", MANY, "finished", "no loss that expects labels of -1 and 1"),
    ("class-weights-inverted", "no labels", MANY, "finished", "no labels of a classification loss"),
    (
        "target-is-the-result",
        "2 steps",
        [*FEW, ev.TargetsMatched(kind="cross_entropy", how="argmax", varied=True, labels=100)],
        "finished",
        "too little evidence",
    ),
    ("result-never-read", "no backward pass", [*MET, CALLED], "finished", "no backward pass"),
    (
        "targets-of-other-samples",
        "2 steps",
        [*MET, *[ev.RowsPaired(table="x", other="y", rows=100, equal=False, site=LOSS)] * 2],
        "finished",
        "too little evidence",
    ),
    (
        "scaled-with-evaluation-data",
        "an error",
        [*MET, ev.ScalingRead(model=1, table="x_test", rows=90, site=EVAL)],
        "crashed",
        "the script did not run to its end",
    ),
    (
        "samples-change-between-passes",
        "samples that are not stored",
        MANY,
        "finished",
        "no stored samples that could be compared with those of an earlier step",
    ),
    ("one-batch-per-epoch", "no loader", MANY, "finished", "no DataLoader"),
    # Several ranks.
    ("ranks-diverge", "one process", MANY, "finished", "one process only"),
    ("ranks-see-same-data", "one process", MANY, "finished", "one process only"),
    ("saved-by-every-rank", "one process", MANY, "finished", "one process only"),
    ("metrics-not-reduced", "one process", MANY, "finished", "one process only"),
    ("clipped-per-rank", "one process", MANY, "finished", "one process only"),
    ("no-sync-missing", "no wrapper", MANY, "finished", "no DistributedDataParallel"),
    (
        "batch-statistics-per-rank",
        "no wrapper",
        [*MANY, ev.BatchStatisticsTaken(model=1, values=3, layers=1, kind="BatchNorm1d")],
        "finished",
        "no DistributedDataParallel",
    ),
    (
        "sampler-epoch-not-set",
        "no such sampler",
        [*LOADER, *MANY],
        "finished",
        "no training on a loader with a sampler that shuffles by its epoch",
    ),
    # Time and state.
    ("anomaly-mode-left-on", "2 steps", FEW, "finished", "fewer than 200 optimizer steps"),
    ("loss-kept-with-graph", "2 steps", FEW, "finished", "fewer than 24 backward passes"),
    ("exported-in-train-mode", "no export", MANY, "finished", "no exported program saved"),
    (
        "exported-in-train-mode",
        "no layer with a mode",
        [*MANY, ev.ModelExported(by="torch.jit.trace", training=True)],
        "finished",
        "no layer of the exported model is known to depend on the mode",
    ),
    ("best-weights-aliased", "no load", MANY, "finished", "no load_state_dict"),
    (
        "best-weights-aliased",
        "loaded after 2 steps",
        [*MET, ev.StateLoaded(site=LOSS, taken=CALL, taken_steps=2)],
        "finished",
        "too little evidence",
    ),
    (
        "worst-weights-kept",
        "no best weights",
        MANY,
        "finished",
        "no weights kept in a branch that compares a figure with the best one",
    ),
    (
        "worst-weights-kept",
        "a figure without a known direction",
        [*MANY, KEPT],
        "finished",
        "no figure with the name of a loss or an accuracy",
    ),
    (
        "chosen-without-validation",
        "no evaluation",
        [*MANY, KEPT],
        "finished",
        "no evaluation on rows or loaders that differ",
    ),
    ("average-never-updated", "2 steps", FEW, "finished", "fewer than 10 optimizer steps"),
    # Losses and data.
    ("loss-differentiated-twice", "no step", [*MET, CALLED, MADE], "finished", "no optimizer step"),
    ("optimizer-setting-out-of-range", "no optimizer", [], "finished", "no optimizer"),
    (
        "parameters-not-initialised",
        "no parameter without a write",
        MANY,
        "finished",
        "no layer of the program's own with parameters that only a source can initialise",
    ),
    (
        "shuffle-overwrites-rows",
        "no shuffle of a tensor",
        MANY,
        "finished",
        "no tensor or array that `random.shuffle` was called on",
    ),
    (
        "masked-scores-in-softmax",
        "no mask",
        MANY,
        "finished",
        "no softmax of scores with a mask",
    ),
    (
        "kl-outweighs-reconstruction",
        "no divergence",
        MANY,
        "finished",
        "no loss with a reconstruction error and a KL divergence",
    ),
    ("term-without-gradient", "no tape", [*MET, CALLED, USED], "finished", "no readable autograd tape"),
    (
        "target-with-gradient",
        "no error",
        [*MET, CALLED, USED],
        "finished",
        "no squared or absolute error",
    ),
    (
        "value-past-terminal",
        "no flags",
        [*MET, CALLED, USED],
        "finished",
        "no sum of rewards and discounted values with flags of ended episodes",
    ),
    ("noise-scaled-by-variance", "no mixture", MANY, "finished", "no input that is a mixture of samples and noise"),
    (
        "advantage-with-gradient",
        "no product",
        [*MET, CALLED, USED],
        "finished",
        "no product of log-probabilities beside an error of values in a loss",
    ),
    (
        "returns-in-wrong-order",
        "no sums of rewards",
        [*MET, CALLED, USED],
        "finished",
        "no discounted sums of rewards as weights of log-probabilities in a loss",
    ),
    (
        "weights-after-reduction",
        "no weights",
        [*MET, CALLED, USED],
        "finished",
        "no weights of single samples in a loss",
    ),
    (
        "similarities-scaled-down",
        "no similarities",
        [*MET, CALLED, USED],
        "finished",
        "no softmax of similarities of unit vectors in a loss",
    ),
    ("loss-at-chance", "no value of a loss", MANY, "finished", "no loss of one value"),
    (
        "loss-at-chance",
        "one pass",
        [*LOADED, *[ev.LossRead(site=LOSS, value=1.0, root="mse_loss")] * 9],
        "finished",
        "fewer than 3 passes over the data",
    ),
    ("seed-in-training-loop", "no step", [*MET, CALLED, MADE], "finished", "no optimizer step"),
    ("training-on-evaluation-data", "no loader", MANY, "finished", "no DataLoader"),
    ("training-on-evaluation-data", "no evaluation", LOADED, "finished", "no evaluation on a DataLoader"),
    ("noise-not-in-input", "no noise", MANY, "finished", "no target that is drawn for the loss alone"),
    (
        "reconstructs-the-noise",
        "no corrupted input",
        MANY,
        "finished",
        "no corrupted input that is also the target",
    ),
    ("target-in-input", "no tokens", MANY, "finished", "no targets that are tokens of the input"),
    ("view-instead-of-permute", "no copy", MANY, "finished", "no call of a model repeated on a copy"),
    ("layer-setting-out-of-range", "no model", [MADE, USED], "finished", "no model call"),
    # Results of evaluations.
    ("metric-misreported", "no accuracy", MANY, "finished", "no variable with the accuracy of an evaluation"),
    (
        "metric-misreported",
        "a quotient of three predictions",
        [*MANY, ev.FigureRead(name="accuracy", value=0.5, batches=1, equal=1, samples=3)],
        "finished",
        "no evaluation with comparisons that are all known",
    ),
    (
        "predictions-worse-than-chance",
        "no comparison",
        MANY,
        "finished",
        "no comparison of results with targets that could be repeated",
    ),
    (
        "predictions-worse-than-chance",
        "results without classes",
        [*MANY, ev.ResultCompared(model=1, samples=900)],
        "finished",
        "no predicted classes that are compared with targets",
    ),
]
ELSEWHERE = re.compile(r"NOT_OBSERVED|unobserved|verdict\(")
"""The same in the test of a single rule."""


@pytest.mark.parametrize(
    ("id", "events", "how", "reason"),
    [(row[0], *row[2:]) for row in TABLE],
    ids=[f"{row[0]}: {row[1]}" for row in TABLE],
)
def test_a_run_that_could_not_show_the_failure_is_not_clear(id, events, how, reason):
    found = verdict(id, events, how)
    assert (found.outcome, found.reason) == (Outcome.NOT_OBSERVED, reason)


def test_every_rule_has_a_run_that_could_not_show_its_failure():
    here, tests = {row[0] for row in TABLE}, Path(__file__).parent
    own = {
        path.stem.removeprefix("test_").replace("_", "-")
        for path in tests.glob("test_*.py")
        if ELSEWHERE.search(path.read_text(encoding="utf-8"))
    }
    missing = sorted(all_rules().keys() - here - own)
    assert missing == [], f"add a row to TABLE for {', '.join(missing)}"


@pytest.mark.parametrize("id", all_rules())
def test_no_rule_is_clear_after_an_import(id):
    for how in ("finished", "crashed"):
        assert verdict(id, [], how).outcome is Outcome.NOT_OBSERVED
