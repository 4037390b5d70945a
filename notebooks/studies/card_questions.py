"""Where questions go that are asked one by one, each in a conversation of its own."""

from collections.abc import Mapping, Sequence

from kit.bench.routing import RoutingKit, Stub
from kit.bench.routing_report import RoutedTurn
from kit.runtime.team import Team
from kit.runtime.turn import run_turn
from studies.study_deck import study_session


async def route_questions(questions: Mapping[str, Sequence[str]], team: Team) -> list[RoutedTurn]:
    """Sub-agent -> questions for it: each question alone, in a session of its own, over stubs of
    the team's sub-agents."""
    cards = team.orchestrator.sub_cards.values()
    kit = RoutingKit(team.with_agents({card.id: Stub(card) for card in cards}))
    turns: list[RoutedTurn] = []
    for agent, texts in questions.items():
        for number, question in enumerate(texts):
            session = study_session(f"{agent}-{number}")
            reply = await run_turn(question, session, kit)
            called = reply.routing.invoked
            turns.append(RoutedTurn(query=question, expected=(agent,), called=called))
    kit.store.close()
    return turns
