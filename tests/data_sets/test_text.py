"""Labelled lines as padded batches of tokens."""

import pickle

import pytest
import torch
from programs import DATA
from torch.utils.data import DataLoader

from truestep import data
from truestep.errors import BadData
from truestep.loop.loading.loader import Loader

REVIEWS = "a fine fine film\tgood\nbad\tpoor\na bad film\tpoor\n"


@pytest.fixture
def reviews(tmp_path):
    (tmp_path / "reviews.tsv").write_text(REVIEWS)
    return tmp_path / "reviews.tsv"


def words(made, tokens):
    return [made.vocab[token] for token in tokens.tolist()]


def test_a_batch_is_padded_to_its_longest_text(reviews):
    made = data.text(reviews)
    tokens, lengths, labels = made.batch(torch.tensor([1, 2]))
    assert words(made, tokens[1]) == ["a", "bad", "film"]
    assert words(made, tokens[0]) == ["bad", "<pad>", "<pad>"]
    assert lengths.tolist() == [1, 3]
    assert labels.tolist() == [1, 1]
    assert made.classes == ("good", "poor")
    assert tokens.dtype == lengths.dtype == labels.dtype == torch.int64


def test_a_sample_is_not_padded(reviews):
    made = data.text(reviews)
    assert words(made, made[1][0]) == ["bad"]
    assert words(made, made[0][0]) == ["a", "fine", "fine", "film"]


def test_a_plain_data_loader_needs_no_collate_fn(reviews):
    tokens, lengths, labels = next(iter(DataLoader(data.text(reviews), batch_size=3)))
    assert tokens.shape == (3, 4)
    assert lengths.tolist() == [4, 1, 3]
    assert labels.tolist() == [0, 1, 1]


def test_frequent_words_come_first_then_by_name(reviews):
    assert data.text(reviews).vocab == ("<pad>", "<unk>", "a", "bad", "film", "fine")


def test_rare_words_are_unknown(reviews, tmp_path):
    (tmp_path / "r.tsv").write_text(REVIEWS + "once\tgood\n")
    made = data.text(tmp_path / "r.tsv", min_count=2)
    assert "once" not in made.vocab
    assert words(made, made[3][0]) == ["<unk>"]


def test_another_file_gets_the_same_tokens(reviews, tmp_path):
    train = data.text(reviews)
    (tmp_path / "other.tsv").write_text("new film\tpoor\n")
    other = data.text(tmp_path / "other.tsv", vocab=train.vocab, classes=train.classes)
    assert other.vocab == train.vocab
    assert words(train, other[0][0]) == ["<unk>", "film"]
    assert int(other[0][2]) == 1


def test_a_split_makes_its_vocabulary_of_the_first_part(reviews):
    made = data.text(reviews)
    first, second = made.split(1, seed=None)
    assert first.vocab == second.vocab == ("<pad>", "<unk>", "fine", "a", "film")
    assert words(first, first[0][0]) == ["a", "fine", "fine", "film"]
    assert words(second, second.batch(torch.tensor([1]))[0][0]) == ["a", "<unk>", "film"]
    assert words(second, second.encode("fine bad")) == ["fine", "<unk>"]
    assert len(made.vocab) == 6
    assert words(made, made[2][0]) == ["a", "bad", "film"]


def test_a_given_vocabulary_stays_in_a_split(reviews):
    made = data.text(reviews, vocab=data.text(reviews).vocab)
    assert made.split(1, seed=None)[0].vocab == made.vocab


def test_words_that_mean_unknown_in_the_file_are_unknown(tmp_path):
    (tmp_path / "t.tsv").write_text("the <unk> the\tx\n")
    made = data.text(tmp_path / "t.tsv")
    assert made.vocab == ("<pad>", "<unk>", "the")
    assert made[0][0].tolist() == [2, 1, 2]


class Encoding:
    def __init__(self, ids):
        self.ids = ids


class Slow:
    def encode(self, text):
        return Encoding([len(word) for word in text.split()])


@pytest.mark.parametrize("tokenizer", [Slow(), lambda text: [len(word) for word in text.split()]])
def test_a_tokenizer_made_elsewhere_makes_the_tokens(reviews, tokenizer):
    made = data.text(reviews, tokenizer=tokenizer, pad=99)
    tokens, lengths, _ = made.batch(torch.tensor([0, 1]))
    assert tokens.tolist() == [[1, 4, 4, 4], [3, 99, 99, 99]]
    assert lengths.tolist() == [4, 1]
    assert made.vocab == ()
    assert made.encode("four").tolist() == [4]
    assert made.split(1, seed=None)[1][0][0].tolist() == [3]


def test_long_texts_are_cut(reviews):
    assert data.text(reviews, max_length=2)[0][0].shape == (2,)


def test_a_file_per_class_is_named_by_its_stem_or_by_its_end(tmp_path):
    for folder, names in (("one", ("pos.txt", "neg.txt")), ("two", ("rt.pos", "rt.neg"))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(f"{name}\n")
        made = data.text(tmp_path / folder)
        assert made.classes == ("neg", "pos")
        assert [int(y) for *_, y in made] == [0, 1]


def test_a_dict_names_classes_in_its_order(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    made = data.text({"yes": tmp_path / "b", "no": tmp_path / "a"})
    assert made.classes == ("yes", "no")
    assert [words(made, x) for x, *_ in made] == [["b"], ["a"]]


def test_a_label_on_the_first_side_and_windows_line_ends_are_read(tmp_path):
    (tmp_path / "t.tsv").write_bytes(b"1\ta b\r\n0\tc\r\n")
    made = data.text(tmp_path / "t.tsv", label="first")
    assert made.classes == ("0", "1")
    assert words(made, made[1][0]) == ["c"]


def test_a_line_ends_at_a_newline_only(tmp_path):
    (tmp_path / "t.tsv").write_bytes(b"caf\xe9 \x85 more\tx\n")
    assert len(data.text(tmp_path / "t.tsv", encoding="latin-1")) == 1


@pytest.mark.parametrize(
    ("held", "happened", "where"),
    [
        (b"one\tx\ntwo\n", "the line has 0 tabs", "line 2"),
        (b"one\tx\ny\tz\tx\n", "the line has 2 tabs", "line 2"),
        (b"one\tx\n\ntwo\tx\n", "the line is empty", "line 2"),
        (b"one\tx\n \tx\n", "the line has no tokens", "line 2"),
        (b"one\tx\ncaf\xe9\tx\n", "byte 0xe9 cannot be decoded as utf-8", "line 2"),
        (b"", "the file is empty", ""),
    ],
)
def test_damaged_files_are_errors_with_their_line(tmp_path, held, happened, where):
    (tmp_path / "t.tsv").write_bytes(held)
    with pytest.raises(BadData, match=happened) as caught:
        data.text(tmp_path / "t.tsv")
    assert caught.value.where == where
    assert caught.value.path == str(tmp_path / "t.tsv")


def test_an_unknown_label_is_named_with_its_line(reviews):
    with pytest.raises(BadData, match="'poor' is not among the classes") as caught:
        data.text(reviews, classes=["good"])
    assert caught.value.where == "line 2"


@pytest.mark.parametrize(
    ("options", "happened"),
    [
        ({"min_count": 0}, "min_count must be at least 1, got 0"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"label": "middle"}, "label must be"),
        ({"vocab": ["a", "b"]}, "not a vocabulary"),
        ({"tokenizer": 3}, "tokenizer must be .*, got a int"),
        ({"tokenizer": len, "min_count": 2}, "need words, not a tokenizer"),
    ],
)
def test_options_that_mean_nothing_are_errors(reviews, options, happened):
    with pytest.raises(BadData, match=happened):
        data.text(reviews, **options)


def test_folders_that_tell_no_classes_are_errors(tmp_path):
    with pytest.raises(BadData, match="holds no files"):
        data.text(tmp_path)
    for name in ("a.txt", "a.b.txt"):
        (tmp_path / name).write_text("x")
    with pytest.raises(BadData, match="classes cannot be derived"):
        data.text(tmp_path)


def test_the_loader_reads_it_and_a_pickle_keeps_it(reviews):
    made = pickle.loads(pickle.dumps(data.text(reviews)))
    lengths = [batch[1].tolist() for batch in Loader(made, batch_size=2)]
    assert lengths == [[4, 1], [3]]


def test_describe_and_moving(reviews):
    made = data.text(reviews)
    assert made.describe() == "3 texts of 1 to 4 tokens; 2 classes; 6 words; 0.0 MB on cpu"
    part = made.split(2, seed=None)[0].to("meta")
    assert part.device.type == "meta"
    assert len(part) == 2


@pytest.mark.program
@pytest.mark.skipif(not (DATA / "rt-polarity").is_dir(), reason="no rt-polarity in TRUESTEP_DATA")
def test_movie_reviews_are_read_whole():
    made = data.text(DATA / "rt-polarity")
    assert made.classes == ("neg", "pos")
    assert sum(int(y) for *_, y in made) == 5331
    first, second = made.split(0.9, seed=0)
    assert len(first.vocab) < len(made.vocab)
    tokens, lengths, _ = second.batch(torch.arange(64))
    assert (tokens == 1).any()
    assert torch.equal((tokens != 0).sum(1), lengths)
