"""Models with their state as an input and an output are exported, and give a sequence one token at a time."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from truestep.errors import NotExportable
from truestep.export import export

PROGRAM = Path(__file__).parents[2] / "bench" / "_export_models.py"


@pytest.fixture(scope="module")
def models():
    spec = importlib.util.spec_from_file_location("export_models_of_bench", PROGRAM)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def batches(model, sizes):
    """Return tokens with the caches of some numbers of earlier tokens."""
    for past in sizes:
        tokens = torch.randint(0, 9, (3, past + 1))
        with torch.no_grad():
            cache = model(tokens[:, :past], model.empty(3))[1]
        yield tokens[:, past:], cache


@pytest.mark.program
@pytest.mark.parametrize("to", ["pt2", "onnx"])
def test_a_sequence_has_the_scores_of_one_pass_over_it(models, to, tmp_path):
    if to == "onnx":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    torch.manual_seed(0)
    model = models.Cached(9, block=24, width=16, layers=2, heads=2).eval()
    found = export(model, tmp_path / "made", to=to, batches=list(batches(model, (5, 9, 20))))
    assert [each["shape"] for each in found.config["inputs"]] == [["batch", 1], ["batch", 4, 2, "cache_3", 8]]
    if to == "pt2":
        call = torch.export.load(found.file).module()
    else:
        import onnxruntime

        session = onnxruntime.InferenceSession(str(found.file))

        def call(tokens, cache):
            given = {"tokens": tokens.numpy(), "cache": cache.numpy()}
            return [torch.from_numpy(each) for each in session.run(None, given)]

    tokens = torch.randint(0, 9, (2, 24))
    cache, scores = model.empty(2), []
    with torch.no_grad():
        for at in range(24):
            score, cache = call(tokens[:, at : at + 1], cache)
            scores.append(score)
        torch.testing.assert_close(torch.cat(scores, 1), model(tokens, model.empty(2))[0], atol=1e-5, rtol=1e-5)


def test_a_state_in_an_attribute_is_refused_with_its_line(models, tmp_path):
    model = models.Remembering(9, block=24, width=16, layers=1, heads=2)
    model.cache = model.empty(3)
    with pytest.raises(
        NotExportable, match=r"scores, self\.cache = super\(\)\.forward\(tokens, self\.cache\)"
    ) as caught:
        export(model, tmp_path / "made", to="pt2", batches=[torch.randint(0, 9, (3, 1))])
    assert caught.value.cause == "side-effect"
    assert caught.value.remedy == "pass the state as an input, and return its new value as an output"
