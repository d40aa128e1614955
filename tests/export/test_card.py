"""The model card: metadata of the Hub, metrics with intervals, settings, the comparison."""

import pytest
import yaml

from truestep.export.card import Facts, Supervision, card, interval

CONFIG = {
    "format": "onnx",
    "file": "model.onnx",
    "model": {"class": "network.Net", "factory": None, "arguments": {}},
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 1, 28, 28]}],
    "outputs": [{"dtype": "float32", "shape": ["batch", None]}],
    "weights": {"checkpoint": "step-001000", "name": "ema", "step": 1000, "epoch": 3, "metric": 0.9},
    "preprocessing": {"kind": "images", "classes": ["coat", "a|b"], "mean": 0.3, "std": None, "vocab": ["w"] * 90},
    "quantisation": None,
    "comparison": {
        "runtime": "onnxruntime 1.32",
        "calls": 8,
        "batch_sizes": [1, 2, 7],
        "largest_difference": 1e-6,
        "largest_relative_difference": 2e-7,
        "tolerance": 1e-4,
    },
}


def test_the_metadata_are_those_of_the_hub():
    text = card(CONFIG, Facts(metrics={"accuracy": 0.9, "broken": float("nan")}))
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["pipeline_tag"] == "image-classification"
    (result,) = head["model-index"][0]["results"]
    assert result["task"] == {"type": "image-classification"}
    assert result["metrics"] == [{"type": "accuracy", "value": 0.9}]


def test_shares_of_samples_have_an_interval():
    facts = Facts(metrics={"accuracy": 0.9, "loss": 0.31}, counted={"accuracy": (0.9, 1000), "loss": (0.5, 10)})
    text = card(CONFIG, facts)
    assert "| accuracy | 0.9 | 0.8798 to 0.9171 | 1,000 |" in text
    assert "| loss | 0.31 |  |  |" in text


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_intervals_of_extreme_shares_stay_in_range(share):
    low, high = interval(share, 10)
    assert 0 <= low < high <= 1


def test_paths_are_left_out_and_the_code_is_named():
    environment = {
        "packages": {"torch": "2.13"},
        "git": {"commit": "0123456789abcdef", "changed": True},
        "python": "3.11",
    }
    settings = {"out": "/home/me/run", "lr": 0.1, "resume": "auto", "clip_norm": None}
    text = card(CONFIG, Facts(settings=settings, environment=environment))
    assert "/home" not in text
    assert "| lr | `0.1` |" in text
    assert "| commit | `0123456789ab` with uncommitted changes |" in text
    assert "clip_norm" not in text
    assert "90 entries, in `config.json`" in text
    assert "a\\|b" in text
    assert "Trained with TrueStep: step 1,000, epoch 3, `step-001000`, weights `ema`." in text


def test_findings_and_the_ledger_of_a_supervised_training_are_shown():
    ledger = {"calls": "1,000 training, train mode", "samples": "shuffled"}
    found = Supervision(1000, [("stale-loss", "read | late", "train.py:7")], ledger)
    text = card(CONFIG, Facts(supervision=(found,)))
    assert "1 failure found in the 1,000 steps before the weights were saved, under TrueStep's supervision." in text
    assert "| stale-loss | read \\| late | train.py:7 |" in text
    assert "calls    1,000 training, train mode\nsamples  shuffled\n" in text
    assert "Part 1" not in text
    assert "No failure found in the 1,000 steps" in card(CONFIG, Facts(supervision=(Supervision(1000),)))
    of_run = CONFIG | {"weights": {"name": "model", "step": 1000}}
    text = card(of_run, Facts(supervision=(Supervision(1000),)))
    assert "No failure found in the 1,000 steps before the export" in text


def test_a_training_without_supervision_says_so_in_one_line():
    section = card(CONFIG, Facts()).partition("## Supervision\n\n")[2].partition("\n\n")[0]
    assert section == (
        "None: the training before the weights were saved was not supervised by TrueStep, "
        "and no failure was looked for."
    )


def test_each_part_of_a_resumed_training_has_its_ledger_and_parts_without_supervision_are_counted():
    failure = ("stale-loss", "read late", "train.py:7")
    first = Supervision(400, (failure,), {"calls": "400 training"}, ranks=2)
    second = Supervision(500, (failure,), {"calls": "500 training"}, limit="close reading given up at step 9")
    text = card(CONFIG, Facts(supervision=(first, second)))
    assert "1 failure found in 900 of the 1,000 steps before the weights were saved" in text
    assert text.count("| stale-loss |") == 1
    assert "Part 1 of 2, 400 steps:\n\n```text\ncalls  400 training\n```" in text
    assert "Part 2 of 2, 500 steps:\n\n```text\ncalls  500 training\n```" in text
    assert "These are observations of the first of 2 processes." in text
    assert "Not everything was observed: close reading given up at step 9." in text
