"""The case sets are what their source makes, varied and labelled; a bad line is one sentence with file and line."""

import json
from collections import Counter
from functools import lru_cache
from itertools import permutations
from pathlib import Path

import pytest

from case_facts import FACTS, fact
from case_quality import duplicates, share_naming_agent, typical_words
from kit.bench.case import FAILING, KINDS, Case, read_cases
from kit.compose.deck import load_deck
from kit.core.context import Principal
from kit.core.errors import DataError, UnknownId
from kit.core.fault import parse_all
from kit.settings import HOME
from kit.worlds.consumer.world import load_world
from make_cases import DATA, DEFAULT, Maker, write

FOLDER = DATA / "cases"
STEMS = (
    "single",
    "mixed",
    "pairs",
    "switches",
    "fastpath",
    "partial",
    "injection",
    "references",
    "long",
)


@lru_cache(maxsize=1)
def agents() -> tuple[str, ...]:
    return load_deck(HOME / "cards" / "consumer").cards["orchestrator"].sub_agents


def cases(stem: str) -> list[Case]:
    return list(read_cases(FOLDER / f"{stem}.jsonl", agents()))


@pytest.mark.req("PC2-NFR-6")
def test_the_committed_sets_are_what_source_and_seed_make(tmp_path: Path):
    for name in write(tmp_path):
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (
            FOLDER / f"{name}.jsonl"
        ).read_bytes(), name
    assert Maker(load_world(DATA / "world"), seed=12).mixed_cases() != cases("mixed")


@pytest.mark.req("PC2-NFR-6")
def test_there_are_enough_of_every_sort():
    single = Counter(case.domain for case in cases("single"))
    assert single.total() >= 400 and min(single[agent] for agent in agents()) >= 40
    assert single["out_of_scope"] >= 30 and single["small_talk"] >= 30
    sizes = Counter(len(case.turns[0].expected) for case in cases("mixed"))
    assert sizes.total() >= 300 and set(sizes) == {2, 3, 4, 5} and min(sizes.values()) >= 30
    assert {case.turns[0].expected for case in cases("mixed")} >= set(permutations(agents(), 2))
    switched = {
        (*a.expected, *b.expected)
        for case in cases("switches")
        for a, b in zip(case.turns, case.turns[1:], strict=False)
    }
    assert switched == set(permutations(agents(), 2))
    assert {kind for stem in STEMS for kind in (case.kind for case in cases(stem))} == set(KINDS)


@pytest.mark.parametrize("stem", STEMS)
def test_every_case_says_whom_it_is_for_and_no_two_of_a_set_ask_nearly_the_same(stem: str):
    for case in cases(stem):
        assert case.scored
        for ask in case.turns:
            assert ask.expected or case.kind == "small_talk", case.id
            assert set(ask.queries) <= set(ask.expected)
            assert all(part.rstrip("?. ") in ask.user for part in ask.queries.values()), case.id
        assert case.kind != "oos" or case.turns[0].expected == (DEFAULT,), case.id
    if stem not in ("switches", "long"):
        assert duplicates(cases(stem)) == []


def test_no_vertical_is_given_away_by_its_length_or_its_name():
    typical = {
        domain: words
        for domain, words in typical_words(cases("single")).items()
        if domain in agents()
    }
    assert max(typical.values()) <= 1.6 * min(typical.values())
    assert share_naming_agent(cases("single")) < 0.05 and share_naming_agent(cases("mixed")) < 0.25


def test_what_is_to_fail_can_fail_and_leaves_something_to_own_up_to():
    found: Counter[str] = Counter()
    for case in cases("partial"):
        faults = parse_all(case.faults, agents(), "orchestrator")
        assert {fault.where for fault in faults} <= set(case.turns[0].expected) and set(
            case.topics
        ) == set(case.turns[0].expected)
        assert not {known.agent for known in case.turns[0].facts} & {
            fault.where for fault in faults
        }
        found.update(fault.kind for fault in faults)
    assert set(found) > FAILING and min(found.values()) >= 5


def test_facts_are_true_of_the_user_they_are_about():
    world = load_world(DATA / "world")
    keys: set[str] = set()
    for stem in ("single", "mixed", "partial"):
        for case in cases(stem):
            for known in case.turns[-1].facts:
                assert fact(world, case.principal, known.agent, known.name) == known
                keys.add(known.name.partition(":")[0])
    assert keys == set(FACTS)
    demo = Principal(tenant_id="acme", user_id="u-001")
    assert fact(world, demo, "rewards", "balance").any_of == ("4975",)
    with pytest.raises(UnknownId, match="did you mean 'balance'"):
        fact(world, demo, "rewards", "balanse")
    with pytest.raises(DataError, match="holds no 'progress:Chess' for acme/u-001"):
        fact(world, demo, "play", "progress:Chess")


GOOD = {"id": "a", "turns": [{"user": "coffee deals", "expected_sub_agents": ["shop"]}]}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{not json", "not JSON"),
        (json.dumps({**GOOD, "id": ""}), "a case without an id"),
        (json.dumps({**GOOD, "id": "a"}), "id 'a' is that of line 1 already"),
        (
            json.dumps({"id": "b", "user": "hi", "expected_sub_agents": ["shoop"]}),
            "unknown agent 'shoop': did you mean 'shop'",
        ),
        (json.dumps({"id": "b", "user": "hi"}), "'expected_sub_agents' is missing"),
        (json.dumps({"id": "b", "turns": ["hi"]}), "a turn is no object"),
        (json.dumps({**GOOD, "id": "b", "kind": "sinlge"}), "case 'b', kind: "),
        (
            json.dumps({**GOOD, "id": "b", "forbid": ["4975"]}),
            "case 'b': unknown field 'forbid': did you mean 'forbids'",
        ),
        (
            json.dumps({"id": "b", "turns": [{"user": "coffee", "optional_subagents": ["shop"]}]}),
            "unknown field 'optional_subagents': did you mean 'optional_sub_agents'",
        ),
    ],
)
def test_a_bad_line_is_one_sentence_with_file_and_line_and_earlier_cases_are_kept(
    tmp_path: Path, line: str, sentence: str
):
    path = tmp_path / "mine.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n{line}\n{json.dumps({**GOOD, 'id': 'z'})}\n")
    done: list[str] = []
    with pytest.raises(DataError) as caught:
        for case in read_cases(path, agents()):
            done.append(case.id)
    said = str(caught.value)
    assert (
        done == ["a"] and said.startswith(f"{path}:3: ") and sentence in said and "\n" not in said
    )


def test_cases_of_ones_own_need_the_least_there_can_be(tmp_path: Path):
    (tmp_path / "mine.jsonl").write_text(
        '{"id": 7, "user": "my bill?", "expected_sub_agents": ["Billing 1"], "extra": {}, "topic": "bills", "cluster_id": 3}\n'
    )
    (case,) = read_cases(tmp_path / "mine.jsonl", {"Billing 1"})
    assert (case.id, case.kind, case.turns[0].expected) == ("7", "single", ("Billing 1",))
    (told,) = read_cases(tmp_path / "mine.jsonl", with_labels=False)
    assert told.turns[0].user == "my bill?" and told.scored == ()
