"""A trial of one card before it goes live: dialogues are played with the card active, and its own
judge reads the answers."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kit.bench.case import Case
from kit.bench.promotion import Promotion, promote
from kit.bench.routing_report import RoutedTurn
from kit.bench.scoring.judge import Judge, LLMJudge, Rubric, RuleJudge, read_rubric
from kit.bench.scoring.run_case import run_case
from kit.bench.scoring.scorers import SCORERS
from kit.bench.tool_cases import play_cases
from kit.compose.deck import Deck
from kit.compose.read import card_file
from kit.core.card import AgentCard
from kit.core.errors import DeckError, UnknownId
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.handle import Host
from kit.runtime.team import Team

RULE = "rule"
"""The judge of a card that a scorer stands in for: the one its rubric is named for."""
_DRAFT = re.compile(r"^status:[ \t]*draft[ \t]*$", re.M)


def with_card_active(deck: Deck, card_id: str) -> Deck:
    """The deck with this card bound, draft or not. Raises UnknownId for a card the deck does not hold."""
    if card_id not in deck.cards:
        raise UnknownId("card", card_id, deck.cards)
    active = deck.cards[card_id].model_copy(update={"status": "active"})
    return replace(deck, cards={**deck.cards, card_id: active})


async def hold_trial(deck: Deck, card_id: str, cases: Iterable[Case], kit: Host) -> Promotion:
    """Plays the dialogues in which the card has a part on `kit`, then the card's tool cases, and
    decides by `promote`.

    Each answer to a turn that is for this card alone is judged as its `eval` says; the share that
    passes is held against the card's threshold, like the share of switches that were routed right.
    Raises DataError or UnknownId for a judge that is none.
    """
    judge = judge_of(deck.cards[card_id], kit.team)
    subs = {card.id for card in kit.team.orchestrator.sub_cards.values()}
    turns = list[RoutedTurn]()
    passes = list[bool]()
    for case in cases:
        agents: set[str] = set()
        for ask in case.turns:
            agents.update(ask.expected)
        if card_id not in agents or not agents <= subs:
            continue
        for turn, (observation, _) in zip(case.scored, await run_case(case, kit), strict=True):
            turns.append(RoutedTurn.of(case, turn, observation.called))
            if judge is not None and case.turns[turn].expected == (card_id,) == observation.invoked:
                verdict = await judge.judge(case, observation)
                if verdict is not None:
                    passes.append(verdict.score >= judge.rubric.pass_mark)
    tools = await play_cases(kit.team, card_id)
    return promote(deck, card_id, turns, tool_results=tools, passed=passes if judge else None)


def judge_of(card: AgentCard, team: Team) -> Judge | None:
    """The judge that a card's `eval` names: a scorer of its rubric's name, or a card of the deck
    with a rubric of the deck.

    None where the card names none. Raises DataError for a rubric that cannot be read, UnknownId for another name.
    """
    if card.eval is None:
        return None
    if card.eval.judge == RULE:
        return RuleJudge(read_rubric(card.eval.rubric), SCORERS[card.eval.rubric])
    agent = team.agents.get(card.eval.judge)
    if not isinstance(agent, LLMAgent):
        raise UnknownId("judge", card.eval.judge, [RULE, *team.agents])
    if card.eval.rubric not in team.deck.rubrics:
        raise UnknownId("rubric", card.eval.rubric, team.deck.rubrics)
    text = team.deck.rubrics[card.eval.rubric].text
    return LLMJudge(Rubric(id=card.eval.rubric, text=text), agent.model.runnable)


def write_active(folder: Path, card: AgentCard) -> Path:
    """Sets the card's file to active, and returns it. Raises DeckError where no file of the folder
    says that it is a draft."""
    path = card_file(folder, card.id)
    if path is not None:
        text = path.read_text(encoding="utf-8")
        if _DRAFT.search(text):
            path.write_text(_DRAFT.sub("status: active", text, count=1), encoding="utf-8")
            return path
    raise DeckError(
        f"no file of {folder} can be changed:",
        [f"none holds card {card.id!r} with a line `status: draft`"],
    )
