"""Guards between decision and execution: what each does, how they interplay, and that each can be switched off."""

import pytest
from langchain_core.messages import ToolMessage

from kit.compose.parts import Guards
from kit.core.bodies.guard import CallDropped, GuardActed
from kit.core.bodies.speech import Acknowledged, Text, TextReplaced
from kit.core.context import OPERATOR
from kit.core.display.turn_parts import ending_words
from kit.core.outcome import SET_ASIDE, LeftOut
from kit.core.record import Message
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, agents_asked, answering, bodies, small_kit, stitched

MIXED = "my receipt didn't scan and find me coffee deals"
AGENTS = ("shop", "support", "rewards", "play", "restaurants")


def line(
    *calls: tuple[str, str],
    intents: int | None = None,
    text: str = "Let me look.",
    ids: tuple[str, ...] = (),
) -> Line:
    count = len(calls) if intents is None else intents
    return Line(
        text,
        calls=[(f"ask_{agent}", {"query": query, "intent_count": count}) for agent, query in calls],
        ids=ids,
    )


def kit_of(
    *lines: Line | str, guards: Guards | None = None, cap: int = 4, default: str | None = "shop"
) -> SmallKit:
    """Five agents that say their name, and a lead that says these lines and then composes by joining its results."""
    models = {agent: answering(f"From {agent}.") for agent in AGENTS}
    lead = ScriptedModel(*lines, stitched)
    return small_kit(
        lead,
        models,
        guards=guards or Guards(),
        default_sub_agent=default,
        support_agent="support",
        cap=cap,
    )


async def turn(kit: SmallKit, text: str, said: str = "", in_play: tuple[str, ...] = ()) -> Reply:
    history = [Message(turn_id="t0", role="assistant", text=said)] if said else []
    return await run_turn(text, ALICE, kit, history=history, in_play=in_play)


def lead(kit: SmallKit) -> ScriptedModel:
    return kit.team.orchestrator.model.runnable.bound  # type: ignore[attr-defined]


def acted(reply: Reply, guard: str) -> list[str]:
    """What a guard did, in order."""
    found = [body for body in bodies(reply, GuardActed) if body.guard == guard]
    assert all(body.reason for body in found)
    return [body.action for body in found]


def dropped(reply: Reply) -> list[tuple[str, str | None]]:
    return [
        (body.agent, body.guard) for body in bodies(reply, CallDropped) if body.reason == "guard"
    ]


def results(kit: SmallKit) -> tuple[list[str], list[ToolMessage]]:
    """Ids of the calls the composing model sees, and the tool messages that answer them."""
    seen = lead(kit).seen[-1]
    ids = [call["id"] for message in seen for call in getattr(message, "tool_calls", ())]
    return ids, [message for message in seen if isinstance(message, ToolMessage)]


def answered_once(kit: SmallKit) -> bool:
    ids, messages = results(kit)
    return sorted(ids) == sorted(m.tool_call_id for m in messages) and len(set(ids)) == len(ids)


# ── failsafe ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-2", "PC1-S9.5-3")
async def test_a_call_missing_by_the_models_own_count_is_asked_for_by_name_and_added():
    support, shop = ("support", "my receipt didn't scan"), ("shop", "find me coffee deals")
    kit = kit_of(line(support, intents=2), line(support, shop, text="Sorry!"))
    reply = await turn(kit, MIXED)
    assert agents_asked(reply) == [support, shop]
    assert acted(reply, "failsafe") == ["asked_again", "merged"]
    first, again = lead(kit).seen[:2]
    demand = str(again[0].content)
    assert 'ask_support with "my receipt didn\'t scan"' in demand
    assert "missing 1" in demand and "find coffee deals" in demand and again[1:] == first[1:]
    routing = reply.routing
    assert (routing.intent_count, routing.later_calls, routing.reported_intents) == (1, 1, 2)
    assert answered_once(kit)
    assert "Sorry" not in reply.preamble + reply.text


@pytest.mark.req("SAT-2")
@pytest.mark.parametrize("error", [None, ConnectionError("503 from host")])
async def test_a_retry_that_fails_or_says_nothing_costs_no_call_in_hand(
    error: Exception | None,
):
    kit = kit_of(
        line(("support", "my receipt didn't scan"), intents=2),
        Line(error=error) if error else Line("No."),
    )
    reply = await turn(kit, MIXED)
    assert agents_asked(reply) == [("support", MIXED)]
    assert acted(reply, "failsafe")[-1] == "short"
    assert reply.status == "ok" and "503" not in reply.text
    assert (
        reply.text
        == "From support.\n\nI left out “find me coffee deals” for now; ask me again and I'll take it next."
    )


@pytest.mark.req("SAT-2")
async def test_a_second_request_to_the_same_agent_is_no_duplicate_and_a_reworded_one_is():
    text = "find coffee deals and compare laundry detergents"
    again = line(
        ("shop", "search for coffee offers"), ("shop", "compare laundry detergents"), intents=2
    )
    reply = await turn(kit_of(line(("shop", "find coffee deals"), intents=2), again), text)
    assert agents_asked(reply) == [
        ("shop", "find coffee deals"),
        ("shop", "compare laundry detergents"),
    ]


# ── echo ────────────────────────────────────────────────────────────────────────────────────────────

ASKED = "Sorry about that. Was it bought in the in-app shop?"


@pytest.mark.req("SAT-3")
@pytest.mark.parametrize("reply_text", ["in-app shop", "yes please", "it was the shop"])
@pytest.mark.parametrize(
    "decided",
    [line(("shop", "offers")), line(("rewards", "x"), ("play", "y")), Line("You're welcome!")],
)
async def test_a_short_answer_to_supports_question_goes_to_support(reply_text: str, decided: Line):
    kit = kit_of(decided)
    reply = await turn(kit, reply_text, ASKED, ("support",))
    assert agents_asked(reply) == [("support", reply_text)]
    assert "rerouted" in acted(reply, "echo") and acted(reply, "fastpath") == []
    assert reply.text.strip(" |") == "From support." and answered_once(kit)
    assert reply.preamble == "One moment, I'm looking into that."


@pytest.mark.req("SAT-3")
@pytest.mark.parametrize(
    ("text", "said", "in_play"),
    [
        ("find coffee deals", ASKED, ("support",)),
        ("in-app shop", "It was bought in the in-app shop.", ("support",)),
        ("in-app shop", ASKED, ("shop",)),
        ("the in-app shop on my other phone", ASKED, ("support",)),
        ("it was in the shop", ASKED, ("support",)),
        ("ok", "All done. Can I help you with anything else?", ("support",)),
    ],
)
async def test_what_does_not_answer_supports_question_stays_where_it_was_sent(
    text: str, said: str, in_play: tuple[str, ...]
):
    reply = await turn(kit_of(line(("shop", text))), text, said, in_play)
    assert agents_asked(reply) == [("shop", text)] and acted(reply, "echo") == []


@pytest.mark.req("SAT-3")
async def test_when_two_agents_were_in_play_the_question_must_be_supports_own():
    async def after(own: str) -> list[tuple[str, str]]:
        kit = kit_of(line(("shop", "yes")))
        composed = "Your receipt is fine. Do you want more coffee deals?"
        history = [
            Message(turn_id="t0", role="assistant", text=composed),
            Message(turn_id="t0", role="assistant", text=own, agent="support"),
        ]
        return agents_asked(
            await run_turn("yes", ALICE, kit, history=history, in_play=("support", "shop"))
        )

    assert await after("Your receipt is fine.") == [("shop", "yes")]
    assert await after("Shall I open a ticket for it?") == [("support", "yes")]


async def test_a_yes_to_another_agents_question_goes_to_that_agent_not_to_the_default():
    reply = await turn(
        kit_of(Line("Great!")),
        "yes",
        "You have 4,200. Do you want to see what they buy?",
        ("rewards",),
    )
    assert agents_asked(reply) == [("rewards", "yes")]
    assert acted(reply, "fastpath") == ["rerouted"]


# ── overlap ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-4")
async def test_a_call_about_nothing_the_user_said_is_dropped_and_never_told_where_others_cover_every_part():
    kit = kit_of(
        line(
            ("support", "my receipt didn't scan"),
            ("play", "bonus level status"),
            ("shop", "coffee deals"),
        )
    )
    reply = await turn(kit, MIXED)
    assert agents_asked(reply) == [("support", "my receipt didn't scan"), ("shop", "coffee deals")]
    assert dropped(reply) == [("play", "overlap")] and acted(reply, "overlap") == ["dropped"]
    assert reply.routing.refused == ("play",) and reply.routing.dropped == ()
    assert (
        reply.routing.intent_count,
        reply.routing.reported_intents,
        reply.routing.cap_behavior,
    ) == (3, 3, "within")
    assert answered_once(kit)
    assert [m.content for m in results(kit)[1]] == ["From support.", "From shop.", SET_ASIDE]
    assert "acknowledged" not in [e.kind for e in reply.events]
    assert reply.text.strip(" |") == "From support. | From shop."


@pytest.mark.req("SAT-4")
@pytest.mark.parametrize("text", ["[picture: tea.png]", "what about it and then them?"])
async def test_text_without_content_words_drops_nothing(text: str):
    reply = await turn(
        kit_of(line(("support", "check this receipt"), ("shop", "identify this product"))), text
    )
    assert [agent for agent, _ in agents_asked(reply)] == ["support", "shop"] and dropped(
        reply
    ) == []


@pytest.mark.req("SAT-4", "SAT-5")
@pytest.mark.parametrize(
    ("text", "made", "sent"),
    [
        (
            "what have I earned so far, and find coffee deals",
            [("rewards", "points balance"), ("shop", "coffee deals")],
            "what have I earned so far",
        ),
        (
            "my receipt didn't scan. find coffee deals. something warm to eat nearby?",
            [
                ("restaurants", "places for lunch"),
                ("support", "receipt didn't scan"),
                ("shop", "coffee deals"),
            ],
            "something warm to eat nearby",
        ),
    ],
)
async def test_a_needed_call_in_other_words_is_kept_and_carries_the_part_that_no_other_call_covers(
    text: str, made: list[tuple[str, str]], sent: str
):
    reply = await turn(kit_of(line(*made)), text)
    assert agents_asked(reply) == [(made[0][0], sent), *made[1:]] and dropped(reply) == []
    assert [body.agent for body in bodies(reply, GuardActed)] == [made[0][0]]


@pytest.mark.req("SAT-4")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("两张收据和咖啡优惠在哪里看得到", "咖啡"),
        ("Wo ist mein Café und Müsli?", "MÜSLI"),
    ],
)
async def test_overlap_knows_plurals_case_and_other_alphabets(text: str, query: str):
    reply = await turn(kit_of(line(("support", query), ("rewards", text))), text)
    assert len(agents_asked(reply)) == 2


# ── verbatim ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-5")
@pytest.mark.parametrize(
    ("text", "split"), [("my points and receipts", False), ("my points and my receipts", True)]
)
async def test_four_words_or_fewer_are_never_split_and_five_are(text: str, split: bool):
    reply = await turn(kit_of(line(("rewards", "points"), ("support", "receipts"))), text)
    assert agents_asked(reply) == [
        ("rewards", "points" if split else text),
        ("support", "receipts" if split else text),
    ]


# ── calls as models really emit them ────────────────────────────────────────────────────────────────


# ── later rounds ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-4", "SAT-5", "SAT-8")
@pytest.mark.parametrize(
    "later",
    [(("rewards", "worth of order 4711"),), (("rewards", "order 4711"), ("play", "bonus 88"))],
)
async def test_a_call_made_from_a_result_runs_in_the_models_words(
    later: tuple[tuple[str, str], ...],
):
    kit = kit_of(
        line(("support", "my receipt didn't scan"), ("shop", "find me coffee deals")),
        line(*later, intents=4),
    )
    reply = await turn(kit, MIXED)
    assert agents_asked(reply)[2:] == list(later)
    guards = {body.guard for body in bodies(reply, GuardActed)}
    assert guards == set() and reply.routing.rounds == 2 and answered_once(kit)


# ── switches ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-2", "SAT-3", "SAT-4", "SAT-5", "SAT-6")
@pytest.mark.parametrize("off", list(Guards.model_fields))
async def test_each_guard_can_be_switched_off_and_then_leaves_no_event(off: str):
    script = {
        "failsafe": (line(("support", "my receipt didn't scan"), intents=2), MIXED, "", ()),
        "duplicate": (line(("shop", "coffee deals"), ("shop", "coffee deals")), MIXED, "", ()),
        "echo": (line(("shop", "ok")), "ok", ASKED, ("support",)),
        "overlap": (
            line(("shop", "coffee deals"), ("play", "bonus")),
            "coffee deals for my breakfast",
            "",
            (),
        ),
        "verbatim": (line(("shop", "other words")), MIXED, "", ()),
        "fastpath": (Line("Paris."), "what is the capital of France?", "", ()),
    }
    decided, text, said, in_play = script[off]
    spare = [Line("No more calls.")] if off == "failsafe" else []
    on = await turn(kit_of(decided, *spare), text, said, in_play)
    assert acted(on, off)
    without = await turn(kit_of(decided, guards=Guards(**{off: False})), text, said, in_play)
    assert acted(without, off) == []


# ── parts that nobody took ────────────────────────────────────────────────────

FIVE = "find coffee deals, how many points do I have, my receipt didn't scan, show me new games, and tacos nearby"
PARTS = [
    ("shop", "find coffee deals"),
    ("rewards", "how many points do I have"),
    ("support", "my receipt didn't scan"),
    ("play", "show me new games"),
]
CINCO = (
    "busca ofertas de café, cuántos puntos tengo, mi recibo no se escaneó, muéstrame juegos "
    "nuevos y dime dónde comer tacos"
)
PARTES = [
    ("shop", "ofertas de café"),
    ("rewards", "cuántos puntos"),
    ("support", "mi recibo no se escaneó"),
    ("play", "juegos nuevos"),
]


@pytest.mark.req("PC2-S5.4c", "PC2-FR-7", "PC2-AC-8")
@pytest.mark.parametrize(
    ("text", "made", "name"),
    [(FIVE, PARTS, "tacos nearby"), (CINCO, PARTES, "dime dónde comer tacos")],
    ids=["en", "es"],
)
async def test_a_model_that_obeys_the_cap_leaves_a_part_and_the_answer_names_it(
    text: str, made: list[tuple[str, str]], name: str
):
    kit = kit_of(line(*made, intents=5))
    reply = await turn(kit, text)
    assert (
        agents_asked(reply) == made
        and reply.routing.dropped == ()
        and reply.routing.cap_behavior == "over"
    )
    assert reply.routing.left_out == LeftOut(count=1, parts=(name,))
    assert f"I left out “{name}” for now" in reply.text
    assert f"Not asked: “{name}”." in str(lead(kit).seen[1][0].content), (
        "the composing model is told"
    )
    assert [body.owed for body in bodies(reply, Acknowledged)] == [(f"“{name}”",)]


@pytest.mark.req("PC2-S5.4c")
@pytest.mark.parametrize(
    ("text", "made", "parts"),
    [
        (
            "my points, find coffee deals, and is my refund through?",
            [("rewards", "my points"), ("shop", "find coffee deals")],
            1,
        ),
        (
            "my points, find coffee deals, and is my refund through?",
            [("rewards", "points balance"), ("shop", "coffee deals")],
            1,
        ),
        (
            "my points, find coffee deals, thanks, I am late",
            [("rewards", "my points"), ("shop", "find coffee deals")],
            0,
        ),
    ],
    ids=["sent to nobody", "worded anew", "nothing asked"],
)
async def test_a_question_that_neither_model_nor_guard_counted_is_owned_up_to_where_it_was_plainly_sent_to_nobody(
    text: str, made: list[tuple[str, str]], parts: int
):
    kit = kit_of(line(*made, intents=2), Line("No."))
    reply = await turn(kit, text)
    assert reply.routing.left_out.count == parts
    record = kit.store.turn(reply.turn_id, OPERATOR)
    assert record is not None
    told = ending_words(record.status, record.measures.parts)
    assert told == ("2 of 3 answered" if parts else "Answered")
    assert ("I left out “is my refund through” for now" in reply.text) == bool(parts)


@pytest.mark.req("PC2-S5.4c")
@pytest.mark.parametrize(
    "text", ["compare two brands of yogurt", "find coffee deals and find coffee deals"]
)
async def test_a_model_that_miscounts_a_message_it_sent_whole_owes_nothing(text: str):
    reply = await turn(kit_of(line(("shop", text), intents=2), Line("No.")), text)
    assert reply.text == "From shop." and reply.routing.left_out == LeftOut()


@pytest.mark.req("SAT-2", "PC2-S5.4c")
@pytest.mark.parametrize(("count", "read"), [("2", 2), (2.0, 2), ("two", 1), (True, 1)])
async def test_a_count_is_read_however_the_model_wrote_it(count: object, read: int):
    decided = Line(
        "Let me look.",
        calls=[("ask_support", {"query": "my receipt didn't scan", "intent_count": count})],
    )
    reply = await turn(kit_of(decided, Line("No.")), MIXED)
    assert reply.routing.reported_intents == read and bool(acted(reply, "failsafe")) == (read == 2)


@pytest.mark.req("PC2-FR-7")
async def test_the_limit_of_one_turn_is_in_the_prompt_of_that_turn():
    for cap in (2, None):
        kit = kit_of(line(("shop", "coffee deals")))
        await run_turn("coffee deals please", ALICE, kit, cap=cap)
        assert ("In this turn the limit" in str(lead(kit).seen[0][0].content)) == bool(cap)


# ── what fastpath shows ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-6")
@pytest.mark.parametrize("said", ["I can't help with that.", "Which app do you mean?"])
async def test_off_the_list_the_models_own_refusal_or_question_is_never_shown_and_the_default_agent_is_asked(
    said: str,
):
    question = "what is the capital of France?"
    pieces = tuple(f"{word} " for word in said.split())
    reply = await turn(kit_of(Line(said, pieces=pieces, pace=0.2)), question)
    shown = "".join(body.text for body in bodies(reply, Text, TextReplaced))
    assert said[:8] not in shown
    assert agents_asked(reply) == [("shop", question)] and reply.text == "From shop."
    # It stands where the guard is off, and where there is nobody else to ask.
    for guards, default in ((Guards(fastpath=False), "shop"), (Guards(), None)):
        kit = kit_of(Line(said), guards=guards, default=default)
        assert (await turn(kit, question)).text == said
