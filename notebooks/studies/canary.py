"""A card's new version that is better alone and worse in the answer; and canaries of known truth: how often
they end in a promotion, at whichever look one stops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from kit.bench.canary import OWN, WHOLE, Decision, Gate, decide, gate_of, gates_of
from kit.bench.promotion import Promotion, promote
from kit.bench.shadow import shadow_judges
from kit.compose.deck import Deck
from kit.compose.parts import Block, DeckSettings
from kit.core.card import AgentCard, EvalPolicy
from kit.metrics.estimate import Estimate, wilson
from kit.metrics.judgement import judgements
from kit.models.scripted import Line, ScriptedModel
from kit.settings import Settings
from kit.wire import open_kit

QUESTION = "how many points do I have"
CLOSING = "Is there anything else that I can do for you today?"
"""What the orchestrator says at the end of each answer."""
PROMPTS = {"1": "Say the balance, and what it is worth.", "2": "Say the balance. Close kindly."}
"""Version -> the prompt of the card `points`."""

Scores = list[tuple[str, float]]
ALIKE = 4.0
"""How alike the turns of a session are: of a beta law with this sum of parameters, 1 in 5 of the variance is theirs."""
TURNS = 1.7
"""Turns of a session that are judged, on average; at least one is."""


@dataclass(frozen=True)
class Truth:
    """What the shares of good answers and of good turns really are, of the version in place and of the new one."""

    own: tuple[float, float]
    whole: tuple[float, float]


@dataclass(frozen=True)
class Trial:
    """One canary, looked at until it was decided or the sessions were over."""

    decision: Decision
    sessions: int
    """Sessions of each version at the last look."""


def draw_scores(rng: np.random.Generator, sessions: int, share: float) -> Scores:
    """Draws judgements, yes or no, of so many sessions, whose turns are more alike than those of others."""
    scores: Scores = []
    chances = rng.beta(ALIKE * share, ALIKE * (1 - share), size=sessions)
    turns = 1 + rng.poisson(TURNS - 1, size=sessions)
    for number in range(sessions):
        for draw in rng.random(int(turns[number])).tolist():
            scores.append((f"s{number}", float(draw < chances[number])))
    return scores


def looks_at(
    truth: Truth, margin: float, looks: Sequence[int], rng: np.random.Generator
) -> Iterator[tuple[Gate, Gate]]:
    """The gates of one canary at each look, the numbers of sessions of each version growing."""
    grown: list[Scores] = [
        draw_scores(rng, looks[-1], share) for share in (*truth.own, *truth.whole)
    ]
    ids = [[int(session[1:]) for session, _ in scores] for scores in grown]
    for sessions in looks:
        so_far: list[Scores] = []
        for scores, numbers in zip(grown, ids, strict=True):
            so_far.append(scores[: int(np.searchsorted(numbers, sessions))])
        yield (
            gate_of(OWN, so_far[0], so_far[1], margin),
            gate_of(WHOLE, so_far[2], so_far[3], margin),
        )


def play_trials(
    truth: Truth, margin: float, looks: Sequence[int], trials: int, seed: int = 7
) -> list[Trial]:
    """Plays canaries of one truth; each stops at the first look that decides it."""
    played: list[Trial] = []
    for trial in range(trials):
        rng = np.random.default_rng((seed, trial))
        decision: Decision = "go on"
        sessions = looks[-1]
        for look, gates in zip(looks, looks_at(truth, margin, looks, rng), strict=True):
            decision = decide(gates)
            if decision != "go on":
                sessions = look
                break
        played.append(Trial(decision, sessions))
    return played


def shared_deck(share: float = 0.5) -> Deck:
    """A deck whose card `points` has a new version, which is to stop working out what points are worth."""
    judged = EvalPolicy(judge="rule", rubric="response_quality")
    lead = AgentCard(
        id="lead", description="Asks.", model="offline", sub_agents=("points",), eval=judged
    )
    versions: list[AgentCard] = []
    blocks: list[Block] = []
    for version, prompt in PROMPTS.items():
        block = Block(id=f"points-{version}", category="persona", owner="points", text=prompt)
        blocks.append(block)
        versions.append(
            AgentCard(
                id="points",
                description="Knows the balance.",
                model="offline",
                version=version,
                tools=("balance",),
                prompt_blocks=(block.id,),
                eval=judged,
            )
        )
    settings = DeckSettings.model_validate(
        {
            "orchestrator": "lead",
            "required_blocks": (),
            "guards": False,
            "canary": {"points": {"share": share}},
        }
    )
    return Deck.of(
        [lead, versions[0]], blocks, settings, known=["balance"], next_cards=[versions[1]]
    )


def balance() -> str:
    """Reads the balance."""
    return "4,975 points"


def _models(seed: int) -> dict[str, BaseChatModel]:
    """Models with the habits that the study is about: the old prompt is answered with a worth that nobody gave 3 times
    in 10, the new one with the orchestrator's own closing words 4 times in 10."""
    rng = np.random.default_rng(seed)

    def answer(messages: list[BaseMessage]) -> Line:
        if not isinstance(messages[-1], ToolMessage):
            return Line(calls=[("balance", {})])
        text = "You have 4,975 points."
        if PROMPTS["1"] in str(messages[0].content):
            if rng.random() < 0.3:
                text += " They are worth 49 dollars."
        elif rng.random() < 0.4:
            text += f" {CLOSING}"
        return Line(text)

    def route(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], HumanMessage):
            return Line(calls=[("ask_points", {"query": QUESTION, "intent_count": 1})])
        return Line(f"{messages[-1].content} {CLOSING}")

    return {"lead": ScriptedModel(route), "points": ScriptedModel(answer)}


async def play_canary(sessions: int = 160, seed: int = 7) -> Promotion:
    """Asks the shared deck in so many sessions of one turn, has the turns judged, and decides."""
    settings = Settings(store=":memory:", pace=0.0, today="2026-11-01")
    async with (
        open_kit(settings, deck=shared_deck(), models=_models(seed), tools=[balance]) as kit,
        shadow_judges(kit, waiting=sessions) as judges,
    ):
        for number in range(sessions):
            await kit.ask(QUESTION, kit.session(f"s{number}"))
        assert judges is not None, "the deck shares a card"
        await judges.drain()
        judged = await judgements(kit.store.open_documents().events)
        return promote(kit.deck, "points", gates=gates_of(kit.deck, "points", judged))


def promoted_by(trials: Sequence[Trial], looks: Sequence[int]) -> dict[int, Estimate]:
    """Sessions of each version -> the share of the trials that had ended in a promotion by then."""
    shares: dict[int, Estimate] = {}
    for sessions in looks:
        promotions = 0
        for trial in trials:
            promotions += trial.decision == "promote" and trial.sessions <= sessions
        shares[sessions] = wilson(promotions, len(trials))
    return shares
