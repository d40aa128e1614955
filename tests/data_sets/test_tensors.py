"""Tensors as a data set: samples, batches, parts, and the operations of every set in memory."""

import subprocess
import sys

import pytest
import torch
from torch.utils.data import DataLoader, Subset

from truestep import data
from truestep.errors import BadData
from truestep.loop.loading.in_memory import in_memory
from truestep.loop.loading.loader import Loader


@pytest.fixture
def made():
    return data.tensors(torch.arange(20.0).view(10, 2), torch.arange(10))


def test_importing_data_imports_no_torch_numpy_polars_or_pillow():
    heavy = "{'torch', 'numpy', 'polars', 'PIL'}"
    code = f"import truestep.data, sys; dir(truestep.data); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_functions_stay_functions_whatever_was_imported_before():
    code = (
        "import truestep.data.table, truestep.data.image_folder\n"
        "from truestep import data\n"
        "for name in data.__all__: assert callable(getattr(data, name)), name"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'tsv'"):
        data.tsv


def test_a_batch_is_what_indexing_gives(made):
    indices = torch.tensor([7, 0, 7])
    x, y = made.batch(indices)
    assert torch.equal(x, torch.arange(20.0).view(10, 2)[indices])
    assert y.tolist() == [7, 0, 7]


def test_it_is_read_batch_by_batch_by_the_loader(made):
    assert isinstance(made, data.Batched)
    assert in_memory(made) is made
    assert [y.tolist() for _, y in Loader(made, batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_loader_with_its_own_collate_fn_and_a_subset_give_the_same_samples(made):
    own = Loader(made, batch_size=4, shuffle=True, collate_fn=lambda samples: [int(y) for _, y in samples])
    assert list(own) == [y.tolist() for _, y in Loader(made, batch_size=4, shuffle=True)]
    assert [y.tolist() for _, y in Loader(Subset(made, [9, 2]), batch_size=2)] == [[9, 2]]
    assert own.check_exact()


@pytest.mark.parametrize("workers", [0, 1])
def test_it_is_a_map_style_data_set_too(made, workers):
    batches = list(DataLoader(made, batch_size=4, num_workers=workers))
    assert torch.equal(torch.cat([x for x, _ in batches]), made.tensors[0])


def test_a_plain_loop_ends(made):
    assert [int(y) for _, y in made] == list(range(10))
    assert int(made[-1][1]) == 9
    with pytest.raises(IndexError):
        made[10]
    with pytest.raises(IndexError):
        made[-11]


def test_the_transform_gets_the_first_field_of_the_whole_batch():
    shapes = []

    def double(x):
        shapes.append(tuple(x.shape))
        return 2 * x

    made = data.tensors(torch.ones(5, 3), torch.arange(5), transform=double)
    x, y = made.batch(torch.tensor([1, 2]))
    assert shapes == [(2, 3)]
    assert x.tolist() == [[2.0] * 3] * 2
    assert y.tolist() == [1, 2]
    assert made[0][0].tolist() == [2.0] * 3


def test_parts_share_no_sample_and_hold_all(made):
    first, second = made.split(0.7, seed=3)
    assert (len(first), len(second)) == (7, 3)
    assert sorted([*first.tensors[1].tolist(), *second.tensors[1].tolist()]) == list(range(10))


def test_the_same_seed_draws_the_same_part_and_no_global_generator(made):
    before = torch.get_rng_state()
    one, other, third = (made.split(0.5, seed=seed)[0].tensors[1].tolist() for seed in (1, 1, 2))
    assert one == other != third
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_seed_the_first_samples_are_the_first_part(made):
    first, second = made.split(4, seed=None)
    assert first.tensors[1].tolist() == [0, 1, 2, 3]
    assert second.tensors[1].tolist() == [4, 5, 6, 7, 8, 9]


def test_a_part_of_a_part_is_counted_from_its_own_start(made):
    _, second = made.split(4, seed=None)
    inner, rest = second.split(2, seed=None)
    assert inner.tensors[1].tolist() == [4, 5]
    assert [int(y) for _, y in rest] == [6, 7, 8, 9]
    assert inner.nbytes == made.nbytes // 5


@pytest.mark.parametrize("part", [0.0, 1.0, 0, 10, 0.01, -1])
def test_an_empty_part_is_an_error(made, part):
    with pytest.raises(BadData, match="empty"):
        made.split(part, seed=0)


def test_moving_a_part_moves_its_own_samples_only(made):
    first, second = made.split(4, seed=None)
    assert first.to("meta") is first
    assert first.device.type == "meta"
    assert len(first) == 4
    assert first.nbytes == first.held_bytes == 4 * (2 * 4 + 8)
    assert second.device.type == made.device.type == "cpu"
    assert second.tensors[1].tolist() == [4, 5, 6, 7, 8, 9]


def test_moving_to_where_the_data_are_does_nothing(made):
    kept = made.tensors[0]
    assert made.to(torch.device("cpu")).tensors[0] is kept


def test_describe_counts_fields_and_bytes(made):
    assert made.describe() == "10 samples of float32 (2,), int64 (); 0.0 MB on cpu"


@pytest.mark.parametrize(
    ("fields", "happened"),
    [
        ((), "got none"),
        ((torch.zeros(3), torch.zeros(4)), "different numbers of samples"),
        ((torch.zeros(3), [1, 2, 3]), "field 1 is a list"),
        ((torch.zeros(()),), "field 0 is one number"),
        ((torch.zeros(3), torch.zeros(3, device="meta")), "different devices"),
    ],
)
def test_what_are_no_fields_is_an_error(fields, happened):
    with pytest.raises(BadData, match=happened):
        data.tensors(*fields)
