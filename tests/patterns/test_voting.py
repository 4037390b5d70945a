"""The study of ensembles: members and judge follow their laws, and what they share is what the real
policy leaves them."""

from collections.abc import Sequence

import pytest

from studies.voting import EnsembleAnswer, Judge, Members, play_ensembles


def vote(answers: Sequence[str], right: str, chance: float) -> int:
    return max(range(len(answers)), key=lambda place: answers.count(answers[place]))


def knows(answers: Sequence[str], right: str, chance: float) -> int:
    return answers.index(right) if right in answers else 0


WAYS: dict[str, tuple[int, Judge | None]] = {
    "one": (1, None),
    "vote": (3, vote),
    "knows": (3, knows),
}


def played(together: float, right: float = 0.7) -> dict[str, list[EnsembleAnswer]]:
    answers = play_ensembles(WAYS, Members(together=together, right=right), questions=60)
    return {way: [answer for answer in answers if answer.way == way] for way in WAYS}


def share(answers: list[EnsembleAnswer]) -> float:
    return sum(answer.right for answer in answers) / len(answers)


def test_members_that_err_apart_gain_by_a_vote_and_more_by_a_judge_that_knows() -> None:
    apart = played(0.0)
    assert 0.6 < share(apart["one"]) < 0.8 and share(apart["one"]) + 0.05 < share(
        apart["vote"]
    ) < share(apart["knows"])
    pairs = zip(apart["one"], apart["knows"], strict=True)
    assert all(knowing.right for one, knowing in pairs if one.right), (
        "the first member says the same in every way"
    )


def test_members_of_one_mind_are_one_whatever_the_judge() -> None:
    together = played(1.0)
    assert {tuple(answer.right for answer in answers) for answers in together.values()} == {
        tuple(answer.right for answer in together["one"])
    }


@pytest.mark.parametrize(("right", "expected"), [(1.0, 1.0), (0.0, 0.0)])
def test_nothing_is_right_that_no_member_said(right: float, expected: float) -> None:
    assert {share(answers) for answers in played(0.0, right=right).values()} == {expected}


def test_three_members_and_a_judge_are_four_calls_and_take_the_slowest_and_then_the_judge() -> None:
    apart = played(0.0)
    assert {answer.calls for answer in apart["one"]} == {1} and {
        answer.calls for answer in apart["vote"]
    } == {4}
    assert all(
        three.seconds > one.seconds for one, three in zip(apart["one"], apart["vote"], strict=True)
    )
