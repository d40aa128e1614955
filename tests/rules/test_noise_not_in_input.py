from truestep.events import ModelMet, NoiseCompared, Site
from truestep.rules.noise_not_in_input import NoiseNotInInput
from truestep.testing import judge

MET = ModelMet(model=1, name="denoiser", parameters=(1, 2))
INPUT, LOSS, DRAW = Site("train.py", 7), Site("train.py", 8), Site("train.py", 5)


def compared(site: Site) -> NoiseCompared:
    return NoiseCompared(model=1, site=site, given=INPUT, loss=LOSS, samples=2_048)


def test_other_noise_is_reported_where_it_is_drawn():
    (finding,) = judge(NoiseNotInInput, [MET, compared(DRAW)])
    assert finding.primary.site == DRAW
    assert [mark.site for mark in finding.related] == [INPUT, LOSS]
    assert "2,048" in finding.primary.label


def test_noise_drawn_in_the_loss_is_marked_once():
    (finding,) = judge(NoiseNotInInput, [MET, compared(LOSS)])
    assert [mark.site for mark in finding.related] == [INPUT]
