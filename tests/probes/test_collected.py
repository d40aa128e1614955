from textwrap import dedent

import pytest
import torch

from truestep.events import ResultCompared
from truestep.probes.figures.pairs import given_names, pairs_of
from truestep.testing import capture_events

HEAD = """
import numpy as np
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Linear(4, 3)
x, y = torch.randn(60, 4), torch.randint(0, 3, (60,))
loader = DataLoader(TensorDataset(x, y), batch_size=16)
found, known = [], []
with torch.no_grad():
    for a, b in loader:
        found.extend(net(a).argmax(1).tolist())
        known.extend(b.tolist())
"""


def collected(tmp_path, code, how):
    file = tmp_path / "train.py"
    file.write_text(HEAD + dedent(code))
    with capture_events() as events:
        exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__"})
    return [one for one in events if isinstance(one, ResultCompared) and one.how == how]


@pytest.mark.parametrize(
    "code",
    [
        "print(accuracy_score(known, found))",
        "print((np.array(found) == np.array(known)).mean())",
        "found = torch.tensor(found)\nprint((found == torch.tensor(known)).float().mean())",
        "print(sum(p == t for p, t in zip(found, known)))",
    ],
)
def test_collected_predictions_are_counted_with_their_targets(tmp_path, code):
    (event,) = collected(tmp_path, code, "collected")
    assert sum(count for _, count in event.labels) == event.samples == 60
    assert event.equal == sum(count for target, predicted, count in event.confused if target == predicted)


@pytest.mark.parametrize(
    "code",
    [
        "found = [2 - one for one in found]\nprint(accuracy_score(known, found))",
        "print(accuracy_score(known, [2 - one for one in found]))",
        "print(confusion_matrix(known, found))",
        "other = list(found)\nprint(accuracy_score(other, found))",
    ],
)
def test_translated_predictions_and_tables_are_not(tmp_path, code):
    assert collected(tmp_path, code, "collected") == []


def test_predictions_in_place_of_targets_are_a_mistake(tmp_path):
    (event,) = collected(tmp_path, "print(precision_score(found, known, average='macro'))", "swapped")
    assert event.name == "precision_score(found, known)"


def test_targets_first_are_no_mistake(tmp_path):
    assert collected(tmp_path, "print(precision_score(known, found, average='macro'))", "swapped") == []


NUMBERS = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Linear(4, 1)
x, y = torch.randn(60, 4), torch.randn(60, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=16)
found, known = [], []
for a, b in loader:
    with torch.no_grad():
        out = net(a)
"""


def of_numbers(tmp_path, code):
    file = tmp_path / "train.py"
    file.write_text(NUMBERS + code)
    with capture_events() as events:
        exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__"})
    return {one.how for one in events if isinstance(one, ResultCompared) and one.how and one.how != "collected"}


@pytest.mark.parametrize(
    ("inside", "behind", "how"),
    [
        ("found.append(out.squeeze(1)); known.append(b)", "torch.cat(found) - torch.cat(known)", {"broadcast"}),
        ("found += out[:, 0].tolist(); known += b.tolist()", "np.array(found) - np.array(known)", {"broadcast"}),
        ("found.append(out.numpy()); known.append(b.numpy())", "(np.vstack(found) - np.concatenate(known)).mean() ** 2",
         {"cancelled"}),
        ("found.append(out.sigmoid()[:, 0]); known.append(b)", "torch.cat(found) - torch.cat(known)", {"broadcast"}),
        ("found.append(out.numpy()); known.append(b.numpy())", "np.abs(np.vstack(found) - np.vstack(known))", set()),
        ("found.append(out[:, 0]); known.append(b[:, 0])",
         "(torch.cat(found)[:, None] - torch.cat(known)[None, :]).abs().mean()", set()),
        ("found.append(out * torch.randn(1)); known.append(b[:, 0])", "torch.cat(found) - torch.cat(known)", set()),
        ("found.append(len(out)); known.append(b)", "np.array(found)[:, None] - 3", set()),
    ],
)  # fmt: skip
def test_results_in_lists_are_followed_behind_the_loop(tmp_path, inside, behind, how):
    assert of_numbers(tmp_path, f"    {inside}\nprint({behind})\n") == how


def test_results_of_an_earlier_evaluation_are_no_part_of_a_list(tmp_path):
    again = "for a, b in loader:\n    with torch.no_grad():\n        found.append(net(a)[:, 0]); known.append(b)\n"
    assert of_numbers(tmp_path, f"{again}print(torch.cat(found) - torch.cat(known))\n") == {"broadcast"}


def test_random_states_are_kept(tmp_path):
    collected(tmp_path, "print(accuracy_score(known, found))", "collected")
    supervised = torch.rand(1)
    file = tmp_path / "train.py"
    exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__"})
    assert torch.equal(supervised, torch.rand(1))


def test_names_of_a_loop_and_pairs_of_a_function(tmp_path):
    file = tmp_path / "score.py"
    file.write_text(
        dedent(
            """
            def score(loader):
                p, t = [], []
                for batch in loader:
                    y = batch["y"].to("cpu")
                    z = model(batch)
                    p.append(z)
                    t.append(y)
                p: list = np.concatenate(p)
                return r2_score(y_pred=p, y_true=t), r2_score(np.concatenate(t), p)
            """
        )
    )
    assert given_names(str(file), 2) == {"batch", "y"}
    assert [(one.first, one.second) for one in pairs_of(str(file), 2)] == [("t", "p"), ("t", "p")]
