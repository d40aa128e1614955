"""Embeddings that are read at one row for all positions, or at the ids of another one."""

import pytest

from truestep.events import EmbeddingRead, Site
from truestep.rules.embedding_reads_wrong_rows import EmbeddingReadsWrongRows
from truestep.testing import judge

READ = Site("model.py", 12, 8)


def read(name="place", rows=32, length=16, row=0, *, positions=True, twin="", unread="", beside=""):
    return EmbeddingRead(
        model=1,
        name=name,
        rows=rows,
        length=length,
        row=row,
        positions=positions,
        twin=twin,
        unread=unread,
        beside=beside,
        site=READ,
    )


def test_one_row_at_all_positions_is_found():
    (finding,) = judge(EmbeddingReadsWrongRows, [read()] * 3)
    assert finding.primary.site == READ
    assert "`place` reads row 0 at all positions" in finding.message


def test_ids_with_a_dimension_of_samples_count_with_the_name_of_positions():
    (finding,) = judge(EmbeddingReadsWrongRows, [read("transformer.wpe", positions=False)] * 3)
    assert "`transformer.wpe`" in finding.message
    assert not judge(EmbeddingReadsWrongRows, [read("language", positions=False)] * 3)


def test_the_ids_of_another_embedding_are_found():
    (finding,) = judge(EmbeddingReadsWrongRows, [read("items", row=None, twin="users", unread="item")] * 3)
    assert "`items` is read at the ids of `users`, and nothing reads `item`" in finding.message


def test_an_embedding_of_equal_size_that_is_read_at_other_ids_shows_those_that_were_meant():
    (finding,) = judge(EmbeddingReadsWrongRows, [read("items", row=None, twin="users", beside="shifts")] * 3)
    assert "`shifts` of equal size is read at others" in finding.message
    assert finding.help == "pass the ids of `shifts` to `items`"


@pytest.mark.parametrize(
    "events",
    [
        [read()] * 2,
        [read(rows=2)] * 3,
        [read(length=1)] * 3,
        [read(rows=8)] * 3,
        [*[read()] * 3, read(row=None)],
        [read(), read(row=1), read()],
        [read(row=None)] * 5,
        [*[read(row=None, twin="users", unread="item")] * 3, read(row=None)],
    ],
    ids=[
        "too few reads",
        "types of tokens",
        "one position at a time",
        "fewer rows than positions",
        "other rows later",
        "another row in each call",
        "all positions",
        "other ids later",
    ],
)
def test_healthy_reads_are_quiet(events):
    assert not judge(EmbeddingReadsWrongRows, events)
