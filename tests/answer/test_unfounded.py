"""What nobody delivered is not passed off as known: in a preamble, beside a failed part, on a clean turn."""

import pytest
from langchain_core.tools import tool

from kit.bench.case import read_cases
from kit.core.bodies.guard import GuardActed
from kit.core.bodies.speech import Text, TextReplaced
from kit.core.card import AgentCard
from kit.core.transcript import transcript
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.answer.clauses import asserts
from kit.runtime.turn import Reply, run_turn
from kit.settings import HOME, Settings
from kit.wire import open_kit
from tests.kits import ALICE, answering, asks, bodies, failing, small_kit

LINE = "One moment, I'm looking into that."
MARK = "None of my sources gives"
FAILED = "I wasn't able to get an answer about rewards right now."
SHOP = "Ember Hill has coffee this week."


def read(reply: Reply) -> str:
    """All that the user could read at any moment."""
    return "\n".join(body.text for body in bodies(reply, Text, TextReplaced))


# Before any result


@pytest.mark.req("PC1-FR-2")
@pytest.mark.parametrize(
    "text",
    [
        "You have 9,999 points already.",
        "Let me look. You are a Gold member, by the way.",
        "I see four thousand points, checking.",
        "Your balance is excellent, let me see the rest.",
        "Ya tienes un premio, lo miro.",
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_preamble_that_claims_something_is_the_cards_line(text: str, streamed: bool):
    pieces = [word + " " for word in text.split()] if streamed else []
    call = asks("rewards", text=text)
    lead = ScriptedModel(Line(text, calls=call.calls, pieces=pieces, pace=0.05), "Twelve.")
    reply = await run_turn("my points?", ALICE, small_kit(lead, {"rewards": answering("Twelve.")}))
    assert reply.preamble == LINE and reply.text == "Twelve."
    claim = ("9,999", "Gold", "earned", "thousand", "excellent", "premio")
    assert not any(word in read(reply) for word in claim)


@pytest.mark.parametrize(
    "text",
    [
        "Let me look for deals under $15.",
        "One moment, I'm checking your points and what your receipts say.",
        "Sure, let me see whether your offer is still valid.",
        "I'll look up three things for you.",
        "Un momento, miro tus puntos.",
    ],
)
async def test_a_preamble_that_claims_nothing_stands(text: str):
    kit = small_kit([asks("shop", text=text), SHOP], {"shop": answering(SHOP)})
    reply = await run_turn("deals under $15 and 3 more things", ALICE, kit)
    assert reply.preamble == text and not asserts(text, "under $15")


# Beside a part that failed


async def beside_a_failed_part(text: str) -> str:
    """What a user reads when one agent answers, one fails, and the orchestrator composes `text`, twice."""
    models = {"shop": answering(SHOP), "rewards": failing(OSError("x"))}
    kit = small_kit([asks("shop", "rewards"), text, text], models)
    return (await run_turn("two things", ALICE, kit)).text


@pytest.mark.req("PC2-FR-14")
@pytest.mark.parametrize(
    "claim",
    [
        "You are a Gold member!",
        "Your tier: Gold.",
        "Tu nivel: Oro.",
        "You have four thousand of them.",
        "Usted es miembro de oro.",
        "Gold status is yours.",
        "Congratulations on reaching Gold!",
        "Llegaste al nivel Gold.",
        "Te quedan pocos puntos.",
        "Everything you asked for was done successfully.",
        "All is well, all parts were answered.",
        "Good news on the other matter too: nothing to worry about there.",
        "You're all set!",
        "Nothing is missing.",
        "Todo está hecho.",
        "No te falta nada.",
    ],
)
async def test_a_claim_in_words_beside_a_failed_part_does_not_stand(claim: str):
    assert await beside_a_failed_part(f"{SHOP} {FAILED} {claim}") == f"{SHOP}\n\n{FAILED}"


@pytest.mark.req("PC2-FR-14")
@pytest.mark.parametrize(
    "beside",
    [
        "You have coffee offers at Ember Hill.",
        "Would you like me to try again?",
        "Let me know if you have another question.",
        "Here is what I have for you.",
        "Your best match: Ember Hill.",
        "Everything else is answered.",
        "Not everything could be answered.",
        "All coffee offers at Ember Hill are complete.",
    ],
)
async def test_what_repeats_an_answer_or_is_polite_beside_a_failed_part_stands(beside: str):
    text = f"{SHOP} {FAILED} {beside}"
    assert await beside_a_failed_part(text) == text


# In the answer of an agent none of whose lookups came back


@tool
def load_balance() -> str:
    """Loads the balance."""
    raise OSError("503")


@pytest.mark.req("PC1-R-7")
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("I couldn't load your balance, but pending points post within 24 hours.", True),
        ("No he podido consultar tu saldo, pero los puntos llegan en 24 horas.", True),
        ("I couldn't load your balance, but you have 9,999 points.", False),
        ("I couldn't load your balance, but your points expire in 30 days.", False),
        ("Pending points post within 24 hours.", False),
    ],
)
async def test_general_advice_beside_an_admission_is_kept_with_its_reservation(
    text: str, kept: bool
):
    card = AgentCard(id="rewards", description="Points.", model="offline", tools=("load_balance",))
    rewards = ScriptedModel(Line(calls=[("load_balance", {})]), text)
    lead = ScriptedModel(asks("rewards"), "", "")
    kit = small_kit(lead, {"rewards": rewards}, {"load_balance": load_balance}, cards=[card])
    reply = await run_turn("my balance?", ALICE, kit)
    if kept:
        assert text in reply.text and "may be incomplete" in reply.text
    else:
        assert reply.text == FAILED


# Where nothing failed


async def clean(answer: str, text: str) -> Reply:
    pieces = [text[:20], text[20:]]
    lead = ScriptedModel(asks("shop"), Line(text, pieces=pieces, pace=0.1))
    return await run_turn("how many?", ALICE, small_kit(lead, {"shop": answering(answer)}))


@pytest.mark.parametrize(
    ("answer", "text", "figures"),
    [
        (SHOP, f"{SHOP} Also transfer $500 to account 12345678.", "12345678 or 500"),
        ("You have 5 points.", "You have 50,000 points.", "50,000"),
        ("You have a few points.", "You have fifty thousand points.", "50000"),
        ("It costs $4.50.", "It costs $4.50, which is $19.99 less.", "19.99"),
    ],
)
async def test_a_figure_without_a_source_is_marked_on_a_clean_turn(
    answer: str, text: str, figures: str
):
    reply = await clean(answer, text)
    assert reply.text == f"{text}\n\n{MARK} {figures}, so take that with care."
    assert transcript(reply.events).answer == reply.text
    assert not any(isinstance(event.body, TextReplaced) for event in reply.events)
    assert "figures" in [body.guard for body in bodies(reply, GuardActed)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("You have 4,975 points.", "You have 4,975 points, about 5,000."),
        ("Coffee is $13.20 and tea is $15.30.", "They cost $13.20 and $15.30, together $28.50."),
        ("You have 1,500 points; it takes 900.", "It takes 900, which leaves 600."),
        ("Three bags at $14 each.", "Three bags at fourteen dollars, two or three of twelve."),
        (
            "You have 250 points, 35 of them new.",
            "You have two hundred and fifty, thirty-five new.",
        ),
        ("You have 8,000 points.", "You have 8 thousand points."),
        ("You have 4,975 points.", "Son cuatro mil novecientos setenta y cinco puntos."),
        ("It is on aisle B17.", "Look at aisle B17 or C18."),
        ("It ends on 2026-11-20.", "It ends on 20 November 2026."),
    ],
)
async def test_a_figure_that_is_given_or_worked_out_is_not_marked(answer: str, text: str):
    assert (await clean(answer, text)).text == text


async def test_no_answer_of_the_stand_in_is_marked():
    """The shipped cases on the shipped deck: whatever figure is composed stands in an answer."""
    cases = [
        ask.user
        for name in ("mixed", "single")
        for case in list(read_cases(HOME / "data" / "cases" / f"{name}.jsonl"))[::40]
        for ask in case.turns
    ]
    marked: list[str] = []
    async with open_kit(Settings(store=":memory:", pace=0.0, today="2026-11-01")) as kit:
        for number, message in enumerate(cases):
            reply = await kit.ask(message, kit.session(f"s{number}"))
            if MARK in reply.text or any(
                isinstance(e.body, GuardActed) and e.body.guard == "preamble" for e in reply.events
            ):
                marked.append(f"{message} -> {reply.preamble} | {reply.text}")
    print(f"\n{len(marked)} of {len(cases)} marked")
    assert len(cases) > 12 and not marked, marked
