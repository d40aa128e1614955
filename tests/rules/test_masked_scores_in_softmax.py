from truestep.events import MaskedScoresRead, RunEnded, Site
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.masked_scores_in_softmax import MaskedScoresInSoftmax
from truestep.testing import judge

LINE = Site("train.py", 32, 8)
MODEL = """
import torch

class Attention(torch.nn.Module):
    def forward(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1)
        scores = scores.masked_fill(mask == 0, 0.0)
        return torch.softmax(scores, dim=-1) @ v
"""


def run(*shares, **others):
    reads = [MaskedScoresRead(site=LINE, share=share, **others) for share in shares]
    return [*reads, RunEnded(how="finished")]


def test_a_weight_of_masked_scores_is_found_at_the_loss():
    (finding,) = judge(MaskedScoresInSoftmax, run(0.3, 0.25, 0.01))
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.HIGH)
    assert finding.message == "a softmax gives 30% of its weight to masked scores"
    assert (finding.seen.count, finding.seen.total) == (2, 3)


def test_the_place_of_the_mask_is_found_if_it_is_the_only_one(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    (finding,) = judge(MaskedScoresInSoftmax, run(0.3, files=(str(path),)))
    assert (finding.primary.site.path, finding.primary.site.line) == (str(path), 7)
    assert finding.related[0].site == LINE
    other = tmp_path / "encoder.py"
    other.write_text(MODEL)
    (finding,) = judge(MaskedScoresInSoftmax, run(0.3, files=(str(path), str(other))))
    assert finding.primary.site == LINE


def test_logarithms_and_choices_have_medium_confidence():
    for other in ({"log": True}, {"form": "where"}, {"form": "put"}):
        (finding,) = judge(MaskedScoresInSoftmax, run(0.3, **other))
        assert finding.confidence is Confidence.MEDIUM


def test_a_mask_as_of_a_dropout_is_found_if_the_program_calls_it_a_mask(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    files = (str(path),)
    assert judge(MaskedScoresInSoftmax, run(0.3, 0.3, at_random=True)) == []
    assert judge(MaskedScoresInSoftmax, run(0.3, 0.3, at_random=True, form="put", files=files)) == []
    (finding,) = judge(MaskedScoresInSoftmax, run(0.3, 0.3, at_random=True, files=files))
    assert finding.primary.site.line == 7
    again = [MaskedScoresRead(site=LINE, share=0.1), *run(0.3, at_random=True)]
    (finding,) = judge(MaskedScoresInSoftmax, again)
    assert "10%" in finding.message


def test_weights_of_almost_zero_are_clear():
    assert judge(MaskedScoresInSoftmax, run(0.0, 0.01)) == []
    rule, progress = MaskedScoresInSoftmax(), Progress()
    assert rule.verdict(progress).reason == MaskedScoresRead.absent
    progress.note(MaskedScoresRead(site=LINE))
    assert rule.verdict(progress).outcome is Outcome.CLEAR


def test_a_mask_of_queries_is_found_at_two_losses():
    (finding,) = judge(MaskedScoresInSoftmax, run(0.3, 0.35, queries=True))
    assert finding.message == (
        "a mask of attention covers queries, and the softmax gives 35% of its weight to these positions"
    )
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.MEDIUM)
    assert judge(MaskedScoresInSoftmax, run(0.3, queries=True)) == []


def test_the_only_mask_of_whole_rows_is_named(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        MODEL.replace("mask == 0, 0.0", "mask[:, :, None], -1e9") + "        x.masked_fill(mask[:, None], 0)\n"
    )
    (finding,) = judge(MaskedScoresInSoftmax, run(0.3, 0.3, queries=True, files=(str(path),)))
    assert finding.primary.site.line == 7
