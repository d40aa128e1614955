"""Tables from CSV files: nothing is guessed, and statistics come from the training rows."""

import gzip

import pytest
import torch
from programs import DATA

from truestep import data
from truestep.errors import BadData

HOUSES = "rooms,place,age,price\n4,bay,1.5,10\n,inland,2.5,20\n6,bay,,30\n8,island,3.5,40\n"


@pytest.fixture
def houses(tmp_path):
    (tmp_path / "houses.csv").write_text(HOUSES)
    return tmp_path / "houses.csv"


def written(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path / name


def full(houses, **options):
    return data.csv(houses, **{"target": "price", "categorical": ["place"], "missing": "median"} | options)


def test_numbers_come_first_then_a_column_per_category(houses):
    made = full(houses, missing=0)
    x, y = made.tensors
    assert made.features == ("rooms", "age", "place=bay", "place=inland", "place=island")
    assert x.tolist() == [[4, 1.5, 1, 0, 0], [0, 2.5, 0, 1, 0], [6, 0, 1, 0, 0], [8, 3.5, 0, 0, 1]]
    assert y.tolist() == [[10], [20], [30], [40]]
    assert x.dtype == y.dtype == torch.float32


@pytest.mark.parametrize(
    ("choice", "rooms", "age"),
    [("median", 6, 2.5), ("mean", 6, 2.5), (-1, -1, -1), ({"rooms": "mean", "age": 7}, 6, 7)],
)
def test_missing_numbers_are_filled_as_chosen(houses, choice, rooms, age):
    x, _ = full(houses, missing=choice).tensors
    assert (x[1, 0], x[2, 1]) == (rooms, age)


def test_the_median_of_an_even_number_is_between_the_middle_two(tmp_path):
    x, *_ = data.csv(written(tmp_path, "a,b\n1,0\n2,0\n4,0\n9,0\n,0\n"), missing="median").tensors
    assert x[4, 0] == 3


def test_rows_without_a_value_are_dropped_where_that_is_chosen(houses):
    made = full(houses, missing="drop")
    assert made.tensors[1].flatten().tolist() == [10, 40]
    assert len(made.features) == 5


@pytest.mark.parametrize("choice", [None, {"rooms": "median"}, {"age": "median", "rooms": "category"}])
def test_a_missing_value_without_a_choice_names_line_column_and_choices(houses, choice):
    with pytest.raises(BadData, match="has no value in 1 of 4 rows") as caught:
        full(houses, missing=choice)
    line, column = (4, "age") if choice == {"rooms": "median"} else (3, "rooms")
    assert caught.value.path == str(houses)
    assert caught.value.where == f"line {line}, column {column!r}"
    assert "median, mean, drop, a number" in caught.value.expected


def test_a_missing_target_is_never_filled(tmp_path):
    path = written(tmp_path, "a,b\n1,2\n3,\n")
    with pytest.raises(BadData, match="column 'b' has no value") as caught:
        data.csv(path, target="b", missing="median")
    assert "missing=: drop" in caught.value.expected
    assert len(data.csv(path, target="b", missing="drop")) == 1


def test_text_without_a_choice_names_line_column_and_choices(houses):
    with pytest.raises(BadData, match="'bay' is not a number") as caught:
        data.csv(houses, target="price", missing=0)
    assert caught.value.where == "line 2, column 'place'"
    assert 'categorical=["place"]' in caught.value.remedy
    assert 'drop=["place"]' in caught.value.remedy


def test_one_word_among_numbers_is_found_on_its_line(tmp_path):
    path = written(tmp_path, 'a,b\n1,"x\ny"\n\n2,z\nn/a,w\n')
    with pytest.raises(BadData, match="'n/a' is not a number") as caught:
        data.csv(path, categorical=["b"])
    assert caught.value.where == "line 6, column 'a'"
    assert data.csv(path, categorical=["b"], null_values=["n/a"], missing=0).tensors[0][:, 0].tolist() == [1, 2, 0]


def test_nan_is_a_missing_value_and_infinity_an_error(tmp_path):
    path = written(tmp_path, "a,b\n1,2\nNaN,3\n")
    with pytest.raises(BadData, match="has no value"):
        data.csv(path)
    for text in ("inf", "-Infinity", "1e39"):
        with pytest.raises(BadData, match="no finite float32") as caught:
            data.csv(written(tmp_path, f"a,b\n1,2\n{text},3\n"))
        assert caught.value.where == "line 3, column 'a'"


def test_missing_categories_are_a_category_or_dropped(tmp_path):
    path = written(tmp_path, "a,b\n1,x\n2,\n3,y\n")
    made = data.csv(path, categorical=["b"], missing={"b": "category"})
    assert made.features == ("a", "b=x", "b=y", "b=(missing)")
    assert made.tensors[0][1].tolist() == [2, 0, 0, 1]
    assert len(data.csv(path, categorical=["b"], missing="drop")) == 2
    for choice in ("median", 3):
        with pytest.raises(BadData, match="has no value"):
            data.csv(path, categorical=["b"], missing=choice)


def test_codes_are_a_field_of_their_own(houses):
    made = full(houses, categorical={"place": "codes"})
    x, codes, y = made.tensors
    assert x.shape == (4, 2)
    assert codes.tolist() == [[0], [1], [0], [2]]
    assert codes.dtype == torch.int64
    assert y.shape == (4, 1)
    assert made.categories == {"place": ("bay", "inland", "island")}


def test_given_categories_keep_their_order_and_others_are_errors(houses):
    made = full(houses, categorical={"place": ["island", "inland", "bay", "moon"]})
    assert made.features[2:] == ("place=island", "place=inland", "place=bay", "place=moon")
    assert made.tensors[0][0, 2:].tolist() == [0, 0, 1, 0]
    with pytest.raises(BadData, match="'island' is not a known category") as caught:
        full(houses, categorical={"place": ["inland", "bay"]})
    assert caught.value.where == "line 5, column 'place'"


def test_a_target_of_text_is_classes_and_one_of_numbers_is_not(tmp_path):
    path = written(tmp_path, "a,b,c\n1,yes,10\n2,no,9\n3,yes,10\n")
    text = data.csv(path, target="b", drop=["c"])
    assert text.classes == ("no", "yes")
    assert text.tensors[1].tolist() == [1, 0, 1]
    assert text.tensors[1].dtype == torch.int64
    assert data.csv(path, target="c", drop=["b"]).classes == ()
    numbers = data.csv(path, target="c", drop=["b"], classes="all")
    assert numbers.classes == ("9", "10")
    assert numbers.tensors[1].tolist() == [1, 0, 1]
    with pytest.raises(BadData, match="'yes' is not a known class") as caught:
        data.csv(path, target="b", drop=["c"], classes=["no", "maybe"])
    assert caught.value.where == "line 2, column 'b'"


def test_without_a_header_columns_are_numbered_or_named(tmp_path):
    path = written(tmp_path, "1,2,a\n3,4,b\n")
    made = data.csv(path, header=False, target=-1)
    assert made.features == ("column_0", "column_1")
    assert made.classes == ("a", "b")
    named = data.csv(path, header=False, columns=["x", "y", "z"], target="z")
    assert named.features == ("x", "y")
    with pytest.raises(BadData, match="2 columns have names"):
        data.csv(path, header=False, columns=["x", "y"])


def test_lines_are_counted_without_a_header_too(tmp_path):
    with pytest.raises(BadData) as caught:
        data.csv(written(tmp_path, "1,2\n3,x\n"), header=False)
    assert caught.value.where == "line 2, column 'column_1'"


def test_white_space_blank_lines_and_a_byte_order_mark_are_no_data(tmp_path):
    path = written(tmp_path, b"\xef\xbb\xbfa, b\r\n 1 , x \r\n\r\n2,x\r\n\r\n\r\n")
    made = data.csv(path, categorical=["b"])
    assert made.features == ("a", "b=x")
    assert made.tensors[0].tolist() == [[1, 1], [2, 1]]


def test_a_row_of_empty_cells_is_a_row(tmp_path):
    with pytest.raises(BadData, match="has no value") as caught:
        data.csv(written(tmp_path, "a,b\n1,2\n\n,\n3,4\n"))
    assert caught.value.where == "line 4, column 'a'"


def test_other_separators_encodings_and_compression_are_read(tmp_path):
    held = "größe;x\n1;2\n".encode("latin-1")
    path = written(tmp_path, gzip.compress(held), "t.csv.gz")
    assert data.csv(path, separator=";", encoding="latin-1").features == ("größe", "x")
    with pytest.raises(BadData, match="byte 0xf6 cannot be decoded as utf-8") as caught:
        data.csv(path, separator=";")
    assert caught.value.where == "line 1"


def test_one_name_is_a_list_of_one(houses):
    made = data.csv(
        houses, categorical="place", drop="price", missing={"rooms": 0, "age": 0, "place": "drop"}, null_values="inland"
    )
    assert made.features[-2:] == ("place=bay", "place=island")


def test_cells_are_replaced_before_anything_else(tmp_path):
    path = written(tmp_path, "a,b\n1,<=50K.\n2,>50K\n")
    made = data.csv(path, target="b", replace={"<=50K.": "<=50K"})
    assert made.classes == ("<=50K", ">50K")


@pytest.mark.parametrize(
    ("text", "happened", "where"),
    [
        ("a,b\n1,2\n3\n4,5\n", "the line has 1 cells", "line 3"),
        ("a,b\n1,2\n3,4,5\n", "the line has 3 cells", "line 3"),
        ('a,b\n"1\n",2\n3\n', "the line has 1 cells", "line 4"),
        ("a,b\n1,2\n3,4,\n", "the line has 3 cells", "line 3"),
        ('a,b\n1,2\n"3,4\n5,6\n', "the line has 1 cells", "line 3"),
        ("a,a\n1,2\n", "2 columns are named 'a'", "line 1"),
        ("a,,b\n1,2,3\n", "column 2 has no name", "line 1"),
        ("a,b\n", "no rows", ""),
        ("", "the file is empty", ""),
        (" \n\n", "the file is empty", ""),
    ],
)
def test_damaged_files_are_errors_with_their_line(tmp_path, text, happened, where):
    with pytest.raises(BadData, match=happened) as caught:
        data.csv(written(tmp_path, text), missing="drop")
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("options", "happened"),
    [
        ({"target": "prize"}, "target='prize' is not a column"),
        ({"target": 4}, "one of 4 columns, got 4"),
        ({"categorical": ["town"]}, "categorical='town' is not a column"),
        ({"drop": ["town"]}, "drop='town' is not a column"),
        ({"missing": {"town": 0}}, "missing='town' is not a column"),
        ({"missing": "mode"}, "missing must be .*, got 'mode'"),
        ({"categorical": {"place": "one-hot"}}, "categorical must be .*, got 'one-hot'"),
        ({"classes": "some"}, 'classes must be a list or "all", got'),
        ({"separator": "--"}, "separator must be one character"),
    ],
)
def test_options_that_mean_nothing_are_errors(houses, options, happened):
    with pytest.raises(BadData, match=happened):
        full(houses, **options)


def test_standardizing_gives_mean_0_and_deviation_1_also_to_constants_and_large_numbers(tmp_path):
    rows = "".join(f"{1_600_000_000 + number},7,{number % 2}\n" for number in range(10))
    x, *_ = data.csv(written(tmp_path, "time,same,odd\n" + rows), standardize=True).tensors
    assert torch.allclose(x.mean(0), torch.zeros(3), atol=1e-6)
    assert torch.allclose(x.std(0, correction=0), torch.tensor([1.0, 0.0, 1.0]))


def test_a_split_learns_from_its_first_part_alone(tmp_path):
    rows = "".join(f"{number},0\n" for number in range(8)) + "1000,0\n,0\n"
    made = data.csv(written(tmp_path, "a,b\n" + rows), missing="mean", standardize=True, target="b")
    first, second = made.split(8, seed=None)
    own = torch.arange(8, dtype=torch.float64)
    scaled = (own - 3.5) / own.std(correction=0)
    assert torch.allclose(first.tensors[0][:, 0].double(), scaled)
    assert torch.allclose(second.tensors[0][0, 0].double(), (1000 - 3.5) / own.std(correction=0))
    assert second.tensors[0][1, 0] == 0  # the first part's mean, and not the second's
    assert made.tensors[0][0, 0] != first.tensors[0][0, 0]
    inner, _ = second.split(1, seed=None)
    assert len(inner) == 1


def test_another_file_is_read_with_what_was_learnt(houses, tmp_path):
    made = full(houses, standardize=True)
    other = made.read(written(tmp_path, "place,price,rooms,age,more\ninland,5,,1.5,x\n"))
    assert torch.equal(other.tensors[0][0, 1:2], made.tensors[0][0, 1:2])
    assert torch.equal(other.tensors[0][0, :1], made.tensors[0][1, :1])
    assert other.features == made.features
    assert other.tensors[1].tolist() == [[5]]
    assert len(made.read(written(tmp_path, "place,rooms,age\nbay,1,2\n"))[0]) == 1
    with pytest.raises(BadData, match="'moon' is not a known category"):
        made.read(written(tmp_path, "place,price,rooms,age\nmoon,5,1,1\n"))
    with pytest.raises(BadData, match="column 'age' is missing"):
        made.read(written(tmp_path, "place,price,rooms\nbay,5,1\n"))


def test_a_column_without_any_value_is_an_error(tmp_path):
    with pytest.raises(BadData, match="no values"):
        data.csv(written(tmp_path, "a,b\n,1\n,2\n"), missing="mean")
    with pytest.raises(BadData, match="every row"):
        data.csv(written(tmp_path, "a,b\n,1\n,2\n"), missing="drop")


@pytest.mark.skipif(not (DATA / "housing").is_dir(), reason="no housing in TRUESTEP_DATA")
def test_california_housing_is_read_whole():
    made = data.csv(
        DATA / "housing" / "housing.csv",
        target="median_house_value",
        categorical=["ocean_proximity"],
        missing={"total_bedrooms": "median"},
        standardize=True,
    )
    assert made.tensors[0].shape == (20640, 13)
    assert made.tensors[0].isfinite().all()


@pytest.mark.skipif(not (DATA / "adult").is_dir(), reason="no adult in TRUESTEP_DATA")
def test_adult_is_read_with_its_test_file():
    train = data.csv(
        DATA / "adult" / "adult-train.csv",
        header=False,
        target=-1,
        categorical={f"column_{place}": "codes" for place in (1, 3, 5, 6, 7, 8, 9, 13)},
        null_values=["?"],
        missing="category",
        replace={"<=50K.": "<=50K", ">50K.": ">50K"},
    )
    test = train.read(DATA / "adult" / "adult-test.csv")
    assert (len(train), len(test)) == (32561, 16281)
    assert train.classes == test.classes == ("<=50K", ">50K")
