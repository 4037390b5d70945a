"""Cases as tables: every file that is read, and every fault in one as a sentence with file, line and column."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from kit.bench.scoring.expected_text import contains, equals
from kit.bench.scoring.observation import Observation
from kit.bench.systems.case_table import case_of, read_case_file
from kit.core.errors import DataError

ROWS: list[dict[str, Any]] = [
    {"id": "a", "message": "where is it, please", "expected_text": "Gate 4"},
    {"id": "b", "message": "two things", "expected_agents": "flights|hotels", "cluster": "x"},
    {"id": "c", "message": "hello", "expected_agents": "none"},
]


def write_csv(folder: Path) -> Path:
    path = folder / "cases.csv"
    path.write_text(
        "\ufeffmessage,expected_text,expected_agents,cluster,id,note\r\n"
        '"where is it, please",Gate 4,,,a,\r\n'
        "two things,,flights | hotels,x,b,seen\r\n"
        "\r\n"
        "hello,,none,,c,\r\n",
        encoding="utf-8",
    )
    return path


def write_json_lines(folder: Path) -> Path:
    path = folder / "cases.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


def write_parquet(folder: Path) -> Path:
    path = folder / "cases.parquet"
    columns = ("id", "message", "expected_text", "expected_agents", "cluster")
    table: Any = pa.table({name: [row.get(name) for row in ROWS] for name in columns})
    parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("write", [write_csv, write_json_lines, write_parquet])
def test_every_kind_of_file_holds_the_same_cases(write: Any, tmp_path: Path):
    first, second, third = read_case_file(write(tmp_path))
    assert (first.id, first.turns[0].user) == ("a", "where is it, please")
    assert first.turns[0].expected_text == "Gate 4" and first.turns[0].unlabelled
    assert second.turns[0].expected == ("flights", "hotels") and second.cluster == "x"
    assert second.turns[0].expected_text is None and not second.turns[0].unlabelled
    assert third.turns[0].expected == () and not third.turns[0].unlabelled, "for nobody"


BAD = [
    ("mesage,expected_text\nx,y\n", r"cases.csv:1: column 'mesage': did you mean 'message'\?"),
    (
        "question,answer\nx,y\n",
        r"cases.csv:1: no column 'message'; those there are: 'question', 'answer'",
    ),
    (
        'message,id\n"a\nb",1\nhello, you,2\n',
        r"cases.csv:4: other columns than the 2 of the first line",
    ),
    ("message,id\n ,1\n", r"cases.csv:2, message: it is empty"),
    ('message\n"open\n', r"cases.csv:2: no CSV"),
    ("message,expected_agents\na,*\n", r"cases.csv:2, expected_agents: '\*' is no agent"),
]


@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_a_fault_names_file_line_and_column(text: str, sentence: str, tmp_path: Path):
    path = tmp_path / "cases.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        list(read_case_file(path))


def test_a_file_that_is_not_there_names_the_nearest(tmp_path: Path):
    write_csv(tmp_path)
    with pytest.raises(DataError, match=r"casess\.csv: no such file; did you mean 'cases\.csv'"):
        list(read_case_file(tmp_path / "casess.csv"))


@pytest.mark.parametrize(
    ("expected", "answer", "holds", "is_it"),
    [
        ("Gate 4", "It is at  gate 4.", 1, 0),
        ("Gate 4", "“GATE\u00a04!”", 1, 1),
        ("4", "4.5 of them", 0, 0),
        ("4975", "You have 4,975 points", 1, 0),
        ("isn't", "It isn’t", 1, 0),
        ("art", "a party", 0, 0),
    ],
)
def test_an_expected_text_is_found_as_whole_words_however_it_is_spelt(
    expected: str, answer: str, holds: float, is_it: float
):
    case = case_of({"message": "where", "expected_text": expected}, "here", "a")
    seen = Observation(text=answer)
    assert (contains(case, seen), equals(case, seen)) == (holds, is_it)
