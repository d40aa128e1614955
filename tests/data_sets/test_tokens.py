"""One long sequence of tokens in blocks."""

import gzip

import numpy as np
import pytest
import torch
from programs import DATA

from truestep import data
from truestep.errors import BadData
from truestep.loop.loading.loader import Loader

SHAKESPEARE = DATA / "tinyshakespeare" / "input.txt"


def numbers(path, values, dtype="<u2"):
    np.asarray(values, dtype=dtype).tofile(path)
    return path


def test_y_is_x_one_token_later_and_each_token_is_in_x_once(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(13)), block=4, unit="uint16")
    x, y = made.batch(torch.arange(len(made)))
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert torch.equal(y, x + 1)
    assert x.dtype == y.dtype == torch.int64


def test_a_block_without_its_next_token_is_left_out(tmp_path):
    assert len(data.tokens(numbers(tmp_path / "t.bin", range(12)), block=4, unit="uint16")) == 2


def test_a_stride_of_1_makes_every_place_a_start(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(7)), block=4, stride=1, unit="uint16")
    assert [x.tolist() for x, _ in made] == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("unit", "dtype", "top"), [("uint16", "<u2", 65535), ("uint32", "<u4", 4294967295), ("bytes", "u1", 255)]
)
def test_the_largest_number_is_no_negative_one(tmp_path, unit, dtype, top):
    made = data.tokens(numbers(tmp_path / "t.bin", [0, top, top - 1], dtype), block=2, unit=unit)
    assert made[0][1].tolist() == [top, top - 1]


def test_the_file_is_mapped_and_not_read(tmp_path):
    path = numbers(tmp_path / "t.bin", [1, 2, 3, 4])
    made = data.tokens(path, block=2, unit="uint16")
    with path.open("r+b") as file:
        file.write(b"\x09\x00")
    assert made[0][0].tolist() == [9, 2]


@pytest.mark.parametrize("index", [-1, 3])
def test_a_block_beyond_the_ends_is_an_error_and_wraps_nowhere(tmp_path, index):
    made = data.tokens(numbers(tmp_path / "t.bin", range(16)), block=4, unit="uint16")
    with pytest.raises(IndexError):
        made.batch(torch.tensor([0, index]))


def test_parts_are_by_place_and_share_no_token(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(100)), block=4, stride=1, unit="uint16")
    first, second = made.split(0.8)
    assert len(first) == 76
    assert int(first.batch(torch.tensor([75]))[1].max()) == 79
    assert int(second[0][0][0]) == 80
    assert len(second) == 16


def test_a_number_of_blocks_is_the_length_of_the_first_part(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(100)), block=4, unit="uint16")
    first, second = made.split(7)
    assert len(first) == 7
    assert int(second[0][0][0]) == 29


def test_blocks_are_not_split_at_random(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(100)), block=4, unit="uint16")
    with pytest.raises(BadData, match="split by position"):
        made.split(0.5, seed=0)
    with pytest.raises(BadData, match="without a block"):
        made.split(0.98)


def test_the_loader_reads_blocks_by_index(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(41)), block=4, unit="uint16")
    seen = torch.cat([x[:, 0] for x, _ in Loader(made, batch_size=3, shuffle=True)])
    assert sorted(seen.tolist()) == list(range(0, 40, 4))
    assert seen.tolist() != sorted(seen.tolist())


def test_moving_keeps_the_blocks(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(41)), block=4, unit="uint16")
    assert made.to("meta").device.type == "meta"
    assert len(made) == 10


def test_characters_are_numbered_in_their_order(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("żaba, z\nab\U0001f438", encoding="utf-8")
    made = data.tokens(path, block=5)
    assert made.classes == tuple(sorted("żab, z\n\U0001f438"))
    assert made.decode(made[0][0]) == "żaba,"
    assert made.encode("baba").tolist() == [made.classes.index(character) for character in "baba"]


def test_more_than_256_characters_have_room(tmp_path):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 700)))
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    made = data.tokens(tmp_path / "t.txt", block=600)
    assert made.decode(made[0][1]) == text[1:601]


def test_another_text_gets_the_same_tokens_or_an_error_with_its_place(tmp_path):
    (tmp_path / "a.txt").write_text("hello world\n")
    (tmp_path / "b.txt").write_text("hold\nwell\n")
    (tmp_path / "c.txt").write_text("hold\nwall\n")
    train = data.tokens(tmp_path / "a.txt", block=3)
    other = data.tokens(tmp_path / "b.txt", block=3, classes=train.classes)
    assert torch.equal(other[0][0], train.encode("hol"))
    with pytest.raises(BadData, match="character 'a'") as caught:
        data.tokens(tmp_path / "c.txt", block=3, classes=train.classes)
    assert caught.value.where == "line 2, column 2"


def test_bytes_of_a_text_compressed_or_not_are_the_same(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"some text")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"some text"))
    plain, packed = (data.tokens(tmp_path / name, block=4, unit="bytes") for name in ("a.txt", "a.txt.gz"))
    assert torch.equal(plain[1][0], packed[1][0])
    assert bytes(plain[0][0].tolist()) == b"some"


@pytest.mark.parametrize(
    ("held", "options", "happened"),
    [
        (b"12345", {"unit": "uint16"}, "the file has 5 bytes"),
        (b"123456", {"unit": "uint32"}, "the file has 6 bytes"),
        (b"12", {"unit": "uint16"}, "the file has 1 tokens"),
        (b"", {"unit": "uint16"}, "the file has 0 tokens"),
        (b"", {"unit": "characters"}, "the file has 0 tokens"),
        (b"123456", {}, "unit must be .* got None"),
        (b"123456", {"unit": "words"}, "unit must be .* got 'words'"),
        (b"123456", {"unit": "bytes", "block": 0}, "block must be at least 1, got 0"),
        (b"\xff\xfe", {"unit": "characters"}, "byte 0xff cannot be decoded"),
        (b"ok", {"unit": "characters", "encoding": "utf-99"}, "encoding must be one that Python knows"),
        (b"\x93NUMPY" + bytes(80), {"unit": "uint16"}, "header of numpy"),
    ],
)
def test_files_that_are_no_tokens_are_errors(tmp_path, held, options, happened):
    (tmp_path / "t.bin").write_bytes(held)
    with pytest.raises(BadData, match=happened):
        data.tokens(tmp_path / "t.bin", **{"block": 2, **options})


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(BadData, match="cannot be read"):
        data.tokens(tmp_path / "t.bin", block=2, unit="uint16")


def test_a_token_beyond_the_vocabulary_is_named_by_its_index(tmp_path):
    path = numbers(tmp_path / "t.bin", [1, 2, 60000, 3])
    assert len(data.tokens(path, block=2, unit="uint16", vocab_size=60001)) == 1
    with pytest.raises(BadData, match=r"tokens must be below vocab_size=.*, got 60000") as caught:
        data.tokens(path, block=2, unit="uint16", vocab_size=60000)
    assert caught.value.where == "index 2"


def test_numbers_have_no_text(tmp_path):
    made = data.tokens(numbers(tmp_path / "t.bin", range(9)), block=4, unit="uint16")
    with pytest.raises(BadData, match="not characters"):
        made.decode(made[0][0])
    with pytest.raises(BadData, match="not characters"):
        made.encode("a")


@pytest.mark.skipif(not SHAKESPEARE.is_file(), reason="no tinyshakespeare in TRUESTEP_DATA")
def test_shakespeare_is_read_back():
    made = data.tokens(SHAKESPEARE, block=64)
    assert len(made.classes) == 65
    text = SHAKESPEARE.read_text()
    assert made.decode(made[100][0]) == text[6400:6464]
