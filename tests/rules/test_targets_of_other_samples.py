from truestep.events import CollatedAgain, LoaderMet, MapsPaired, PartnersScored, RowsPaired, Site
from truestep.rules.targets_of_other_samples import TargetsOfOtherSamples
from truestep.testing import judge

LOSS, SECOND = Site("train.py", 12), Site("train.py", 13)


def pair(*, equal=False, other="y", site=LOSS, model=0):
    return RowsPaired(model=model, table="x", other=other, rows=450, equal=equal, site=site)


def order(*, chance=-30.0, **given):
    return RowsPaired(
        model=0, table="x", other="y", rows=32, batch=True, chance=chance, **{"equal": False, "site": LOSS} | given
    )


def found(*events):
    return judge(TargetsOfOtherSamples, events)


def test_targets_of_other_rows_are_named_at_the_loss():
    (finding,) = found(*[pair()] * 5)
    assert finding.primary.site == LOSS
    assert finding.message == "the rows of `y` in a batch are not those of `x`"
    assert finding.seen.count == 5


def test_arguments_of_other_rows_are_named_at_the_call():
    (finding,) = found(*[pair(model=1)] * 3)
    assert finding.primary.label == "arguments of different rows"


def test_two_steps_are_too_few():
    assert found(pair(), pair()) == []


def test_targets_that_are_paired_anywhere_are_quiet():
    assert found(*[pair(equal=True), pair(site=SECOND)] * 4) == []
    assert found(*[pair(site=SECOND)] * 4, pair(equal=True)) == []


def test_each_table_counts_for_itself():
    (finding,) = found(*[pair(other="weights", equal=True), pair()] * 3)
    assert "`y`" in finding.message


def test_another_order_within_the_batches_of_a_loader():
    (finding,) = found(*[order(made=Site("train.py", 10))] * 3)
    assert finding.message == "the rows of `y` in a batch are in another order than those of `x`"
    assert [mark.site.line for mark in finding.related] == [10]


def test_orders_that_come_by_chance_need_more_steps():
    assert found(*[order(chance=-2.0)] * 4) == []
    assert len(found(*[order(chance=-2.0)] * 6)) == 1
    assert found(*[order(chance=-2.0)] * 4, order(equal=True)) == []


SORTS = Site("train.py", 4)
CROSSED = CollatedAgain(loader=1, function="collate", crossed=(("lengths", "y"), ("x", "y")), made=SORTS)
PAIRED = RowsPaired(model=0, table="y", other="x", rows=32, batch=True, equal=True, site=LOSS)


def test_a_collate_function_is_named_if_a_loss_pairs_what_it_moves_apart():
    for events in ((CROSSED, PAIRED, PAIRED), (PAIRED, CROSSED, PAIRED)):
        (finding,) = found(*events)
        assert finding.primary.site == SORTS
        assert finding.message == "`collate` puts `x` and `y` of a batch in different orders"
        assert [mark.site for mark in finding.related] == [LOSS]


def test_parts_that_no_loss_pairs_and_parts_that_stay_together_are_quiet():
    apart = RowsPaired(model=0, table="x", other="z", rows=32, batch=True, equal=True, site=LOSS)
    together = CollatedAgain(loader=1, function="collate")
    assert found(CROSSED, apart) == found(CROSSED) == found(together, PAIRED) == []


def test_partners_of_a_contrastive_loss_that_are_others():
    def score(*other, symmetric=True):
        return [PartnersScored(site=LOSS, rows=64, other=one, symmetric=symmetric) for one in other]

    (finding,) = found(*score(True, True, True))
    assert finding.primary.site == LOSS
    assert finding.message == "the partners in the contrastive loss are other samples"
    assert "the other half of its 64 rows" in finding.cost
    (finding,) = found(*score(True, True, True, symmetric=False))
    assert "at its own row" in finding.cost
    for seen in ((True, True), (True, True, True, False), (False, True, True, True)):
        assert found(*score(*seen)) == []


MADE = Site("train.py", 8)


def stored(*, equal):
    return RowsPaired(table="images", other="labels", rows=450, equal=equal, stored=1)


def test_a_data_set_with_the_labels_of_other_samples_is_found_at_its_loader():
    met = LoaderMet(loader=1, name="train_loader", site=MADE)
    (finding,) = found(met, stored(equal=False))
    assert finding.primary.site == MADE
    assert "`train_loader`" in finding.message
    assert finding.help == "index `labels` and `images` with the same indices"
    assert found(met, stored(equal=True)) == []


def test_a_data_set_says_nothing_of_the_batches():
    assert len(found(LoaderMet(loader=1, name="train_loader", site=MADE), stored(equal=True), *[pair()] * 3)) == 1


def turned(count: int, maps: int) -> MapsPaired:
    site, made = Site("train.py", 12), Site("train.py", 10)
    return MapsPaired(model=1, rows=12, turned=count, maps=maps, how="flipped", site=site, made=made)


def test_images_that_are_turned_without_their_maps_are_found():
    (finding,) = judge(TargetsOfOtherSamples, [turned(2, 2), turned(2, 4)])
    assert "are flipped, and their label maps are not" in finding.message
    assert (finding.primary.site.line, finding.seen.count) == (10, 4)


def test_few_images_or_one_map_are_not():
    assert judge(TargetsOfOtherSamples, [turned(2, 2)]) == []
    assert judge(TargetsOfOtherSamples, [turned(8, 1), turned(8, 1)]) == []
