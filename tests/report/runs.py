"""Runs to report on, with the programs they speak of."""

from pathlib import Path

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Outcome, PostMortem, Seen, Severity, Summary, Verdict

TRAIN = (
    "\n" * 34
    + """\
for epoch in range(10):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()


        optimizer.step()
    scheduler.step()  # truestep: ignore[scheduler-wrong-cadence] one step per epoch is meant
    totals.append(
        loss,
    )
\tbrief = "é"; optimizer.step(); name = "a long string that goes on"; other = "and another one that goes on and on"
"""
)
MODEL = """\
class Net(nn.Module):
    def forward(self, x):
        return self.layers[0](x)  # truestep: ignore[zzz]
"""

CLEAR = tuple(Verdict(f"clear-{number}", Outcome.CLEAR) for number in range(38))
REASONS = ["no scheduler", "no AMP", "no checkpoint", "no scheduler", "no AMP", "no AMP", *["no checkpoint"] * 3]
UNSEEN = tuple(Verdict(f"unseen-{n}", Outcome.NOT_OBSERVED, reason) for n, reason in enumerate(REASONS))
FOUND = tuple(Verdict(id, Outcome.FOUND) for id in ("missing-zero-grad", "scheduler-wrong-cadence"))
VERDICTS = (*FOUND, *CLEAR, *UNSEEN)

MIXED = Finding(
    rule="missing-zero-grad",
    severity=Severity.ERROR,
    confidence=Confidence.HIGH,
    message="optimizer stepped on gradients mixed with the previous step's",
    primary=Mark(Site("train.py", 41, 8, 41, 24), "step 1, AdamW"),
    related=(Mark(Site("train.py", 38, 8, 38, 23), "added to gradients already used at step 0"),),
    seen=Seen(312, 313, "steps", 1),
    cost="gradient norm is 41x the true one by step 100",
    help="call `optimizer.zero_grad()` before `loss.backward()`",
)
PLAIN = Finding(
    rule="layers-in-plain-container",
    severity=Severity.WARNING,
    confidence=Confidence.MEDIUM,
    message="Net calls a Linear that it does not register",
    primary=Mark(Site("model.py", 3, 15, 3, 32, "Net.forward"), "2 of 4 layers are not among model.parameters()"),
    related=(
        Mark(Site("train.py", 37, 25, 37, 33), "called from here"),
        Mark(Site("gone.py", 4, 4, 4, 9), "the optimizer is built here"),
        Mark(None, "no call of add_param_group was seen"),
    ),
    seen=Seen(1, None, "layers", 0),
    help="hold the layers in a ModuleList:\nself.layers = nn.ModuleList(layers)",
)
CADENCE = Finding(
    rule="scheduler-wrong-cadence",
    severity=Severity.ERROR,
    confidence=Confidence.HIGH,
    message="scheduler stepped once per epoch, and its schedule counts steps",
    primary=Mark(Site("train.py", 42, 4, 42, 20), "lr never falls"),
    suppressed=True,
)
UNSURE = Finding(
    rule="graph-cut",
    severity=Severity.ERROR,
    confidence=Confidence.LOW,
    message="part of the model got no gradient",
    primary=Mark(Site("train.py", 38, 8, 38, 23), "reaches 2 of 4 parameters"),
)
KEPT = Finding(
    rule="loss-kept-with-graph",
    severity=Severity.SPEED,
    confidence=Confidence.HIGH,
    message="every step's graph stays in memory",
    primary=Mark(Site("train.py", 43, 4, 45, 5), "312 graphs are alive"),
    related=(Mark(Site("train.py", 43, 4, 43, 10), "this list keeps them"),),
    seen=Seen(312, 313, "steps", 0),
    cost="each graph holds 4 operations and the activations of its batch: memory grows by 1.5 MB a step, measured from "
    "step 24 to step 48",
    help="keep the number: `totals.append(loss.item())`",
    rank=1,
)
LONG = Finding(
    rule="step-without-backward",
    severity=Severity.ERROR,
    confidence=Confidence.HIGH,
    message="optimizer stepped without a backward pass since its last step, on a message that is too long for one line",
    primary=Mark(Site("train.py", 46, 15, 46, 31), "no backward pass since step 0, and a label that does not fit"),
    seen=Seen(1, 313, "steps", 7),
    help="call `loss.backward()` before every `optimizer.step()`",
)

DIED = PostMortem(
    slug="graph-freed",
    error="RuntimeError: Trying to backward through the graph a second time",
    message="`loss` keeps the graphs of earlier rounds, which their backward passes have freed",
    primary=Mark(Site("train.py", 38, 8, 38, 23), "goes back into the round before, whose graph is gone"),
    related=(Mark(Site("train.py", 37, 8, 37, 38), "adds this round's graph to those of earlier rounds"),),
    facts=(("got", "a graph of 12 rounds"),),
    help="call backward on this round's loss alone",
)

RUNS = {
    "died": Summary("train.py", "crashed", 12, (MIXED,), VERDICTS, torch="2.13.0", post_mortem=DIED),
    "one": Summary("train.py", "finished", 313, (MIXED,), VERDICTS, torch="2.13.0"),
    "clear": Summary("train.py", "finished", 313, (), FOUND[1:] + CLEAR + UNSEEN, torch="2.13.0"),
    "many": Summary(
        "train.py",
        "crashed",
        313,
        (MIXED, LONG, CADENCE, UNSURE, PLAIN, KEPT),
        VERDICTS,
        internal_errors=("Traceback (most recent call last):\n  ...\nZeroDivisionError: division by zero\n",),
        torch="2.13.0",
        ranks=4,
        missing_ranks=(2, 3),
        record="runs/lab",
    ),
    "nothing": Summary(
        "other.py", "interrupted", 0, (), (Verdict("graph-cut", Outcome.NOT_OBSERVED, "no backward pass"),)
    ),
}


def write_programs(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
