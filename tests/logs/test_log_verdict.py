"""Two logs of another tool get one verdict, whichever tool wrote them. The logs beside this file were
written by those tools themselves (`make logs`)."""

import csv
import json
import re
import zipfile
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import zstandard

from kit.bench.grid.comparison import AT_PLAN
from kit.bench.logs.inspect_log import _json
from kit.bench.logs.log import Log, LoggedSample
from kit.bench.logs.log_verdict import LogVerdict, compare_logs
from kit.bench.logs.reading import read_log
from kit.home import HOME
from tests.cli.test_cli import refused
from tests.cli.test_cli import run as kit

FOLDER = Path(__file__).parent
PAIRS = {
    "inspect": ("inspect-plain.eval", "inspect-careful.eval"),
    "pydantic-evals": ("pydantic-evals-plain.json", "pydantic-evals-careful.json"),
    "opik": ("opik-plain.json", "opik-careful.json"),
    "promptfoo": ("promptfoo.json#plain", "promptfoo.json#careful"),
    "jsonl": ("rows.jsonl#plain", "rows.jsonl#careful"),
}
TABLE = ("rows.csv#plain", "rows.csv#careful")
SCORES = ("exact", "brevity")
Rows = list[dict[str, Any]]


def verdict(pair: tuple[str, str], cluster: str | None = None, **options: Any) -> LogVerdict:
    first, second = (read_log(str(FOLDER / name), cluster) for name in pair)
    return compare_logs(first, second, SCORES, **options)


def write(folder: Path, name: str, rows: Rows) -> str:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def printed(folder: Path, first: Rows, second: Rows, *options: str) -> str:
    """What the command says of two logs with these rows."""
    logs = write(folder, "first", first), write(folder, "second", second)
    return kit("verdict", *logs, *options).stdout


def rows_of(right: str, **fields: Any) -> Rows:
    """A row for each letter: `1` right, `0` wrong, `e` an error."""
    rows: Rows = []
    for number, letter in enumerate(right):
        row: dict[str, Any] = {"sample": f"s{number:03}", "exact": None, **fields}
        if letter == "e":
            row["error"] = "503"
        else:
            row["exact"] = int(letter)
        rows.append(row)
    return rows


# one verdict for all


@pytest.mark.parametrize("cluster", [None, "topic"])
@pytest.mark.parametrize("tool", PAIRS)
def test_every_tools_log_of_the_same_rows_gives_the_same_verdict_to_the_digit(
    tool: str, cluster: str | None
):
    expected = verdict(TABLE, cluster)
    seen = verdict(PAIRS[tool], cluster)
    assert seen.summaries == expected.summaries
    assert seen.comparisons == expected.comparisons
    assert seen.with_errors_wrong == expected.with_errors_wrong
    # Else the equality says little.
    assert "better" in {one.verdict for one in seen.comparisons} or cluster is not None
    assert sum(summary.failed for summary in seen.summaries) == 2


def test_the_page_on_verdicts_shows_what_is_printed():
    pair = [str(FOLDER / name) for name in PAIRS["inspect"]]
    printed = kit("verdict", *pair, "--by", "exact")
    assert f"```\n{printed.stdout}```" in (HOME / "docs" / "how-to" / "verdict.md").read_text()
    timed = kit("verdict", *pair, "--by", "seconds").stdout
    assert re.search(r"^seconds: careful .* against plain", timed, re.MULTILINE)


# against other software


def outcomes(
    score: str, epoch: int | None
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Sample -> its values on each system, read by nothing of the kit; without the sample that errored."""
    sides: dict[str, dict[str, list[float]]] = {
        "plain": defaultdict(list),
        "careful": defaultdict(list),
    }
    with (FOLDER / "rows.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["sample"] != "s17" and epoch in (None, int(row["epoch"])):
                sides[row["system"]][row["sample"]].append(float(row[score]))
    return sides["plain"], sides["careful"]


def log_of(name: str, values: dict[str, list[float]], score: str = "exact") -> Log:
    samples: list[LoggedSample] = []
    for sample, tries in values.items():
        for epoch, value in enumerate(tries, 1):
            samples.append(LoggedSample(sample=sample, epoch=epoch, scores={score: value}))
    return Log(name=name, tool="a table", samples=tuple(samples))


def test_one_try_is_tested_as_scipy_and_statsmodels_test_it():
    # Every process of the tests reads this file, and one of them plays it.
    from scipy import stats
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.proportion import proportion_confint

    first, second = outcomes("exact", epoch=1)
    (comparison,) = compare_logs(log_of("plain", first), log_of("careful", second)).comparisons
    table = np.zeros((2, 2))
    for sample in first:
        table[int(first[sample][0]), int(second[sample][0])] += 1
    tested: Any = mcnemar(table, exact=True)
    exact = tested.pvalue
    discordant = int(table[0, 1] + table[1, 0])
    assert exact == pytest.approx(stats.binomtest(int(table[0, 1]), discordant).pvalue)
    mid_p = exact - stats.binom.pmf(table[0, 1], discordant, 0.5)
    assert comparison.p.value * AT_PLAN == pytest.approx(mid_p)
    right = sum(values[0] for values in second.values())
    interval = proportion_confint(right, len(second), method="wilson")
    assert (comparison.after.low, comparison.after.high) == pytest.approx(interval)


def test_several_tries_are_tested_as_scipy_flips_signs_and_draws_again():
    from scipy import stats

    first, second = outcomes("brevity", epoch=None)
    pair = (log_of("plain", first, "brevity"), log_of("careful", second, "brevity"))
    (comparison,) = compare_logs(*pair).comparisons
    gains = [fmean(second[sample]) - fmean(first[sample]) for sample in first]
    # Of paired samples a permutation exchanges the two, which flips the sign of their difference.
    test = stats.permutation_test(
        (gains,), np.mean, permutation_type="samples", n_resamples=19_999, rng=7
    )
    assert comparison.p.value * AT_PLAN == pytest.approx(test.pvalue, abs=2e-3)
    # Both are approximate; the level is that of a planned look.
    again = stats.bootstrap((gains,), np.mean, confidence_level=1 - 0.05 * AT_PLAN, rng=7)
    interval = (again.confidence_interval.low, again.confidence_interval.high)
    assert (comparison.difference.low, comparison.difference.high) == pytest.approx(
        interval, abs=0.02
    )


# errors


def test_errors_are_told_in_three_denominators(tmp_path: Path):
    told = printed(tmp_path, rows_of("1" * 60), rows_of("e" + "1" * 58 + "0"))
    assert "58 of 59 = 0.983" in told and "of the completed; 1 turn failed" in told
    assert "0.967 of all, 0.967 to 0.983 had they been wrong or right" in told
    assert "with every error counted as wrong, exact: second 0.967 against first 1.000" in told


def test_more_errors_than_can_be_overlooked_leave_no_verdict_on_the_completed(tmp_path: Path):
    first = write(tmp_path, "first", rows_of("0" * 30 + "1" * 30))
    second = write(tmp_path, "second", rows_of("e" * 5 + "1" * 55))
    found = compare_logs(read_log(first), read_log(second))
    assert [one.verdict for one in found.comparisons] == ["no verdict"]
    assert [one.verdict for one in found.with_errors_wrong] == ["better"]


def test_a_score_that_one_side_never_reached_has_no_verdict_and_says_so(tmp_path: Path):
    """The endpoint was down for all of one side: that it is worse is said with the errors counted alone."""
    right, failed = rows_of("1" * 10), rows_of("e" * 10)
    told = printed(tmp_path, right, failed, "--by", "exact", "--by", "cost")
    assert "\nexact: no verdict, 10 of 10 cells failed here" in told
    found = json.loads(printed(tmp_path, right, failed, "--json"))
    assert found["comparisons"] == [] and len(found["uncompared"]) == 1
    assert found["uncompared"][0] in told
    costs = printed(tmp_path, right, right, "--by", "cost")
    assert costs.endswith("\ncost: no verdict, no sample has a value on both sides\n")


def test_an_errored_line_of_a_long_table_is_an_error_of_every_score(tmp_path: Path):
    lines = ["sample,system,score,value,error"]
    for sample in range(60):
        for system in ("a", "b"):
            if (sample, system) == (7, "b"):
                lines.append(f"s{sample},{system},,,boom")
                continue
            lines.append(f"s{sample},{system},exact,1,")
            lines.append(f"s{sample},{system},brevity,0.5,")
    # Of this sample only the first line says that it failed.
    lines += ["s60,a,exact,1,", "s60,b,exact,0,late", "s60,b,brevity,0.5,"]
    path = tmp_path / "long.csv"
    path.write_text("\n".join(lines))
    command = ("verdict", f"{path}#a", f"{path}#b")
    found = json.loads(kit(*command, "--json").stdout)
    for kind in ("comparisons", "with_errors_wrong"):
        assert [one["scorer"] for one in found[kind]] == ["brevity", "exact"]
    assert found["logs"][1] == "b: a table, 61 samples; 2 errors, such as 'boom'"
    path.write_text("sample,score,value\na,,1\n")
    refused(kit("verdict", str(path), str(path)), "long.csv:2: a value without the name of its")


@pytest.mark.parametrize("word", ["False", "NaN", " "])
def test_a_word_for_no_in_the_column_of_errors_is_none(word: str, tmp_path: Path):
    path = tmp_path / "table.csv"
    path.write_text(f"sample,exact,error\na,1,{word}\nb,1,{word}\nc,fine,503\n")
    (first, second, errored) = read_log(str(path)).samples
    assert (first.error, second.error, errored.error) == (None, None, "503")
    assert "2 of 2 = 1.000" in kit("verdict", str(path), str(path)).stdout


def test_a_system_may_have_a_number_for_a_name(tmp_path: Path):
    rows = [{"sample": i, "system": system, "exact": 1} for i in range(5) for system in (0, 1)]
    path = write(tmp_path, "numbers", rows)
    assert "1, exact: 5 of 5" in kit("verdict", f"{path}#0", f"{path}#1").stdout
    refused(kit("verdict", path, path), "holds 2 systems", "numbers.jsonl#0")


# what is asked of a verdict


def test_equivalence_needs_a_margin_and_enough_samples(tmp_path: Path):
    first, second = rows_of("01" * 200), rows_of("01" * 199 + "10")
    assert "equivalent" not in printed(tmp_path, first, second)
    assert "equivalent within 5 points" in printed(tmp_path, first, second, "--margin", "0.05")
    better = rows_of("1" * 9 + "01" * 195 + "0")
    assert "at any look" in printed(tmp_path, first, better, "--any-look")


def test_a_scale_and_a_score_of_which_less_is_better_are_taken_as_they_are_said(tmp_path: Path):
    low = [{"sample": f"s{i}", "rating": 1 + i % 3} for i in range(40)]
    high = [{"sample": f"s{i}", "rating": 3 + i % 3} for i in range(40)]
    first, second = write(tmp_path, "first", low), write(tmp_path, "second", high)
    refused(kit("verdict", first, second), "rating is 2", "outside of 0 to 1", "--scale rating=1:5")
    scale = ("--scale", "rating=1:5", "--json")
    (one,) = json.loads(printed(tmp_path, low, high, *scale))["comparisons"]
    assert one["verdict"] == "better" and one["difference"]["value"] == pytest.approx(0.5)
    (one,) = json.loads(printed(tmp_path, low, high, *scale, "--lower", "rating"))["comparisons"]
    assert one["verdict"] == "worse" and one["ahead"] == [40, 0], "whoever has less is ahead"


def test_equal_seconds_and_costs_bound_no_mean(tmp_path: Path):
    """One of twenty may take four seconds more, and five samples show none of those."""
    rows = [{"sample": f"s{i}", "seconds": 2.0, "cost": 0.0007} for i in range(5)]
    later = [{**row, "seconds": 2.05} for row in rows]
    margins = ("--margin", "seconds=0.1", "--margin", "cost=0.1")
    options = ("--by", "seconds", "--by", "cost", *margins)
    alike = "(the same in each; up to 45 % of all may differ, by any amount)"
    told = printed(tmp_path, rows, later, *options)
    assert f"first, cost: mean of 5 items = 0.000700 {alike}" in told
    assert f"difference +0.050 {alike}, paired by 5 items; p = " in told
    assert told.count(": cannot tell: any difference is possible") == 2
    for one in json.loads(printed(tmp_path, rows, later, *options, "--json"))["comparisons"]:
        difference = one["difference"]
        assert one["verdict"] == "cannot tell"
        assert difference["low"] is difference["high"] is None
        assert difference["may_differ"] == pytest.approx(1 - 0.05 ** (1 / 5))


def test_a_second_more_on_every_sample_is_worse_by_the_test_alone(tmp_path: Path):
    rows = [{"sample": f"s{i}", "seconds": 2.0} for i in range(20)]
    later = [{**row, "seconds": 3.0} for row in rows]
    told = printed(tmp_path, rows, later, "--by", "seconds")
    assert "difference +1.000 (the same in each; up to 14 % of all may differ" in told
    assert told.endswith("after Holm: worse (second is ahead on 0 samples, first on 20)\n")


def test_no_interval_of_seconds_reaches_below_nothing(tmp_path: Path):
    rows = [{"sample": f"s{i}", "seconds": seconds} for i, seconds in enumerate([9, 0, 0, 0, 1])]
    told = printed(tmp_path, rows, rows, "--by", "seconds", "--json")
    summary = json.loads(told)["summaries"]
    assert summary[0]["estimate"]["low"] == 0.0 < summary[0]["estimate"]["high"]


# what is refused


def test_other_samples_and_other_questions_are_refused(tmp_path: Path):
    first = write(tmp_path, "first", rows_of("1" * 10, input="how?"))
    fewer = write(tmp_path, "fewer", rows_of("1" * 9, input="how?"))
    other = write(tmp_path, "other", rows_of("1" * 10, input="why?"))
    refused(kit("verdict", first, fewer), "not logs of the same samples", "'s009'", "9 are in both")
    refused(kit("verdict", first, other), "asks or expects something else")


def test_other_scorers_and_scores_that_are_no_numbers_are_refused(tmp_path: Path):
    rows = [{"sample": "a", "exact": 1, "comment": "fine"}, {"sample": "b", "exact": 0}]
    first = write(tmp_path, "first", rows)
    other = write(tmp_path, "other", [{"sample": "a", "fluency": 1}, {"sample": "b", "fluency": 1}])
    refused(kit("verdict", first, other), "scored by other scorers", "--by")
    refused(kit("verdict", first, first, "--by", "comment"), "comment is no number", "'fine'")
    refused(kit("verdict", first, first, "--by", "exakt"), "has no score 'exakt'", "exact")


@pytest.mark.parametrize("value", ["nan", "unsure"])
def test_a_score_that_is_once_no_number_is_refused_for_that(value: str, tmp_path: Path):
    path = tmp_path / "table.csv"
    path.write_text(f"sample,system,exact\ns,a,1\ns,b,1\nt,a,{value}\nt,b,1\n")
    refused(kit("verdict", f"{path}#b", f"{path}#a"), "exact is no number in", f"it is '{value}'")


@pytest.mark.parametrize(
    "options",
    [
        ("--lower", "exakt"),
        ("--scale", "exakt=0:3"),
        ("--cluster", "topik"),
        ("--margin", "exakt=0.1"),
        ("--margin", "seconds=0.1"),
    ],
)
def test_an_option_that_names_what_no_log_has_is_refused(options: tuple[str, str], tmp_path: Path):
    """Left out, each of them gives another verdict: the other way round, or surer than it is."""
    first = write(tmp_path, "first", rows_of("10" * 10))
    refused(kit("verdict", first, first, *options), options[1].partition("=")[0])


def test_a_scorer_that_was_set_up_otherwise_is_refused():
    log = read_log(str(FOLDER / "inspect-plain.eval"))
    other = log.replace(scorers={**log.scorers, "exact": "another model judged"})
    with pytest.raises(Exception, match="scored by another set-up"):
        compare_logs(log, other)


def test_a_file_of_several_systems_asks_for_one_and_names_them():
    file = str(FOLDER / "promptfoo.json")
    refused(kit("verdict", file, file), "holds 2 systems", "promptfoo.json#careful")
    refused(kit("verdict", f"{file}#careless", file), "no system 'careless'")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.eval", (FOLDER / "inspect-plain.eval").read_bytes()[:9000]),
        ("text.eval", b"no zip"),
        ("cut.json", b'{"cases": [{"inputs'),
        ("half.json", b'{"name": "x", "cases": [{"name": "a"}]}'),
        ("half2.json", b'{"results": {"results": [{"testIdx": 0, "promptIdx": 0}]}}'),
        ("list.json", b"[1, 2]"),
        ("rows.csv", b"sample,exact\na,1,2\n"),
        ("nameless.csv", b"exact\n1\n"),
        ("rows.jsonl", b"[1]\n"),
        ("twice.csv", b"sample,exact\na,1\na,0\n"),
        ("below.csv", b"sample,exact,seconds\na,1,-2\n"),
    ],
)
def test_a_file_that_is_no_log_ends_in_one_sentence(tmp_path: Path, name: str, content: bytes):
    path = tmp_path / name
    path.write_bytes(content)
    result = kit("verdict", str(path), str(path))
    refused(result, name)
    assert result.stderr.count("\n") == 1


# Inspect's own values


def test_a_run_that_was_stopped_says_so_and_its_verdict_has_to_hold_at_any_look(tmp_path: Path):
    paths: dict[str, str] = {}
    for status in ("success", "cancelled"):
        source = FOLDER / "inspect-careful.eval"
        with zipfile.ZipFile(source) as archive:
            log = _json(archive, source, archive.getinfo("header.json"))
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            log["samples"] = [_json(archive, source, archive.getinfo(name)) for name in names]
        log["status"] = status
        log["results"]["total_samples"] = 2 * len(names)
        paths[status] = str(tmp_path / f"{status}.json")
        Path(paths[status]).write_text(json.dumps(log))
    plain = str(FOLDER / "inspect-plain.eval")
    whole = kit("verdict", plain, paths["success"]).stdout
    stopped = kit("verdict", plain, paths["cancelled"]).stdout
    assert "at any look" not in whole and "status" not in whole
    assert f"its status is 'cancelled', with {len(names)} of {2 * len(names)} samples" in stopped
    assert "at any look" in stopped


def test_values_of_inspect_become_the_numbers_that_inspect_makes_of_them(tmp_path: Path):
    """As its `value_to_float` says, and in a zip as its earlier versions packed it."""
    source = FOLDER / "inspect-plain.eval"
    values = ["C", "P", "I", "N", "yes", "no", "0.25", True, {"a": 1, "b": "P"}, "maybe"]
    path = tmp_path / "values.eval"
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(path, "w") as target:
        target.writestr(
            "header.json", json.dumps(_json(archive, source, archive.getinfo("header.json")))
        )
        names = sorted(name for name in archive.namelist() if name.endswith("_epoch_1.json"))
        for value, name in zip(values, names, strict=False):
            sample = _json(archive, source, archive.getinfo(name))
            sample["scores"] = {"grade": {"value": value}}
            target.writestr(zipfile.ZipInfo(name), json.dumps(sample), zipfile.ZIP_DEFLATED)
    log = read_log(str(path))
    seen = [dict(sample.scores) for sample in log.samples]
    grades = [1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.25, 1.0]
    assert seen[:8] == [{"grade": grade} for grade in grades]
    assert seen[8] == {"grade/a": 1.0, "grade/b": 0.5}
    assert log.not_numeric == {"grade": "'maybe'"}


def test_a_packed_part_that_is_broken_is_told(tmp_path: Path):
    content = bytearray((FOLDER / "inspect-plain.eval").read_bytes())
    # The last one is the header, which every reader begins with.
    frame = content.rindex(zstandard.MAGIC_NUMBER.to_bytes(4, "little"))
    content[frame + 8 : frame + 40] = bytes(32)
    path = tmp_path / "broken.eval"
    path.write_bytes(content)
    refused(kit("verdict", str(path), str(path)), "no whole log of Inspect")


# promptfoo's prompts


def test_a_provider_with_several_prompts_is_several_systems(tmp_path: Path):
    content = json.loads((FOLDER / "promptfoo.json").read_text())
    for result in content["results"]["results"]:
        result["prompt"]["label"] = "short" if result["provider"]["label"] == "plain" else "long"
        result["provider"]["label"] = "one"
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps(content))
    printed = kit("verdict", f"{path}#one / short", f"{path}#one / long", "--by", "exact").stdout
    assert "exact: one / long 0.773 against one / short 0.558" in printed
