import pytest

from truestep.events import CheckSkipped, LoaderMet, LoaderStarted, ModelCalled, OptimizerStepped, SampleReadAgain, Site
from truestep.findings import Confidence, Outcome
from truestep.rules._rule import Progress
from truestep.rules.augmentation_in_evaluation import AugmentationInEvaluation
from truestep.testing import judge

TRAINING, EVALUATION = Site("train.py", 30), Site("train.py", 40)
MET = [
    LoaderMet(loader=1, name="train", shuffled=True, site=TRAINING),
    LoaderMet(loader=2, name="val"),
]
TRAINED = [ModelCalled(model=1, loader=1), OptimizerStepped(optimizer=1)]
STARTED = LoaderStarted(loader=2, site=EVALUATION)
CHANGES = SampleReadAgain(loader=2, model=1, differ=True, beside=(1,))


def test_the_evaluation_is_named_at_its_loader():
    (finding,) = judge(AugmentationInEvaluation, [*MET, *TRAINED, STARTED, CHANGES])
    assert finding.primary.site == EVALUATION
    assert finding.related[0].site == TRAINING
    assert finding.message == "the samples of `val` change each time they are read, as those of `train` do"
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "read",
    [
        SampleReadAgain(loader=2, model=1, beside=(1,)),
        SampleReadAgain(loader=2, model=1, differ=True),
        SampleReadAgain(loader=2, model=1, differ=True, beside=(3,)),
        SampleReadAgain(loader=2, model=2, differ=True, beside=(1,)),
        SampleReadAgain(loader=1, model=1, differ=True, beside=(1,)),
    ],
    ids=["no-change", "transform-of-its-own", "shared-with-others", "another-model", "training-accuracy"],
)
def test_another_outcome_is_quiet(read):
    assert judge(AugmentationInEvaluation, [*MET, *TRAINED, STARTED, read]) == []


def test_test_time_augmentation_is_quiet():
    assert judge(AugmentationInEvaluation, [*MET, *TRAINED, STARTED, CHANGES, STARTED]) == []
    assert judge(AugmentationInEvaluation, [*MET, *TRAINED, STARTED, STARTED, CHANGES]) == []


def test_a_later_evaluation_takes_nothing_back():
    later = [STARTED, CHANGES, OptimizerStepped(optimizer=1), STARTED]
    assert len(judge(AugmentationInEvaluation, [*MET, *TRAINED, *later])) == 1


def test_a_loader_that_is_trained_on_after_all_is_quiet():
    assert judge(AugmentationInEvaluation, [*MET, *TRAINED, STARTED, CHANGES, ModelCalled(model=1, loader=2)]) == []


def test_what_was_skipped_is_not_observed():
    rule, run = AugmentationInEvaluation(), Progress()
    assert rule.verdict(run).reason == SampleReadAgain.absent
    rule.observe(CheckSkipped(check="reads", reason="the evaluation data were not checked: it is read in one go"), run)
    assert rule.verdict(run).reason.endswith("it is read in one go")
    run.note(CHANGES)
    assert rule.verdict(run).outcome is Outcome.CLEAR


PROGRAM = """
from torch.utils.data import DataLoader, random_split

data = Pictures(transform=shake)
train_set, val_set = random_split(data, [80, 20])
val_set.dataset.transform = None
train_loader = DataLoader(train_set, shuffle=True)
val_loader = DataLoader(val_set)
"""


def shared_by_both(path, read):
    """Return the findings of a run with loaders that are built in a file."""
    site = Site(str(path), 7)
    met = [LoaderMet(loader=1, name="train_loader", site=site), LoaderMet(loader=2, name="val_loader", site=site)]
    return judge(AugmentationInEvaluation, [*met, *TRAINED, STARTED, read])


def test_a_transform_that_the_training_loses_is_reported_at_its_assignment(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    (finding,) = shared_by_both(path, SampleReadAgain(loader=2, model=1, beside=(1,)))
    assert finding.primary.site.line == 6
    assert "the training loses `shake`" in finding.message
    assert [mark.site.line for mark in finding.related] == [5, 7]


SWITCHES = [
    "class Pictures:\n    def use(self, transform):\n        self.transform = transform\n",
    "for epoch in range(9):\n    data.set_transform(shake)\n",
    "train_set.dataset.eval()\n",
]


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_transform_that_a_method_switches_is_quiet(tmp_path, switch):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM + switch)
    assert shared_by_both(path, SampleReadAgain(loader=2, model=1, beside=(1,))) == []


@pytest.mark.parametrize("read", [SampleReadAgain(loader=2, model=1), SampleReadAgain(loader=2, model=1, beside=(3,))])
def test_an_evaluation_on_other_data_is_quiet_beside_such_an_assignment(tmp_path, read):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    assert shared_by_both(path, read) == []
