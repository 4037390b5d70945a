"""What counts as owning up, as a claim, as raw text, as a lost answer: sentence by sentence."""

from itertools import permutations

import pytest

from kit.core.bodies.speech import Acknowledged, Text, TextReplaced
from kit.core.transcript import transcript
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.answer.clauses import Part, admits, clauses, loses, makes_claim, stems
from kit.runtime.answer.raw_text import looks_raw
from kit.runtime.turn import Reply, run_turn
from kit.settings import HOME
from kit.worlds.consumer.world import load_world
from tests.kits import ALICE, answering, asks, bodies, small_kit
from tests.paraphrases import EMPTY, OTHERS, PARAPHRASES

REWARDS = Part("rewards", "rewards", frozenset({"point"}))


@pytest.mark.req("PC2-FR-14", "PC1-FR-5")
@pytest.mark.parametrize(
    "text",
    [
        "I wasn't able to get an answer about rewards right now.",
        "I wasn't able to get your points balance right now, but here are the offers I found.",
        "Here are three deals, but I couldn\u2019t reach rewards.",
        "**Rewards:** I couldn't check this at the moment.",
        "### Rewards\nI was unable to load that.",
        "Rewards is unavailable right now.",
        "I left out rewards for now; ask me again and I'll take it next.",
        "I wasn't able to get:\n- your rewards\n- the weather",
        "There was no answer from rewards.",
    ],
)
def test_plain_ways_of_owning_up_are_understood(text: str):
    read = clauses(text)
    assert admits(read, REWARDS) and not makes_claim(read, REWARDS, frozenset())


@pytest.mark.req("PC2-FR-14")
@pytest.mark.parametrize(
    "text",
    [
        "I was not able to stop smiling: rewards says you have 900 points.",
        "I wasn't able to get the weather, but your rewards look great.",
        "Your rewards are not bad at all.",
        "I could not find a single problem with rewards.",
        "Rewards is never unavailable.",
        "All done, everything worked.",
        "Sorry for the wait! Rewards came back with good news.",
    ],
)
def test_a_denial_about_something_else_owns_up_to_nothing(text: str):
    assert not admits(clauses(text), REWARDS)


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("I couldn't reach rewards. Your rewards are all in order.", True),
        ("I couldn't reach rewards. Your points went up nicely.", True),
        ("I couldn't reach rewards. Shall I try rewards again?", False),
        ("I couldn't reach rewards. Let me know if I should retry rewards.", False),
        ("I couldn't reach rewards. Brightroast lets you pay with rewards.", False),
    ],
)
def test_a_claim_names_the_part_and_is_nobodys_answer(text: str, claims: bool):
    assert (
        makes_claim(clauses(text), REWARDS, stems("Brightroast lets you pay with rewards"))
        == claims
    )


@pytest.mark.req("PC1-R-7")
def test_help_told_in_other_words_is_not_lost_and_what_tells_something_else_is():
    articles = {article.id: article for article in load_world(HOME / "data" / "world").articles}

    def kept(article: str, text: str, *siblings: str) -> bool:
        titles = [a.title for a in articles.values() if a.id == article or a.text in siblings]
        return not loses(articles[article].text, text, ["support", *titles], siblings)

    pairs = [
        (a, b) for a, b in permutations(PARAPHRASES, 2) if articles[a].topic != articles[b].topic
    ]
    alone = sum(kept(each, told) for each, told in PARAPHRASES.items())
    both = omitted = 0
    for a, b in pairs:
        sibling = articles[b].text
        both += kept(a, f"{PARAPHRASES[a]} {PARAPHRASES[b]}", sibling)
        omitted += kept(a, PARAPHRASES[b], sibling) + kept(a, sibling, sibling)
    assert alone >= 0.9 * len(PARAPHRASES) and both >= 0.85 * len(pairs)
    assert omitted <= 0.01 * 2 * len(pairs), "what tells something else is lost"
    for article in PARAPHRASES:
        assert not any(kept(article, text) for text in EMPTY), article
        assert not any(kept(article, f"Here you are! {text}", text) for text in OTHERS), article


@pytest.mark.parametrize(
    "text",
    [
        "ask_shop",
        "a KeyError came",
        "looking_up_points_balance",
        "Say plainly that",
        "a ReadTimeout",
        "Traceback",
        'File "a.py", line 3',
        "HTTP 503",
        "STATUS = up",
        "503 Service",
        "429\nToo many",
        "Errno [4",
        "code: 404",
        "cla\u0130m noth\u0131ng for",  # letters that count as an i where case is free
        "too many parts in one message",
        "Write the answer again",
        "The other re\u017fults are all there is",
    ],
)
def test_raw_text_is_seen_by_its_shape(text: str):
    assert looks_raw(text)


@pytest.mark.parametrize(
    "text",
    [
        "It costs $503.",
        "Ask shop.",
        "An error of mine, sorry.",
        "Code SAVE20 at https://x.example/a-b",
    ],
)
def test_plain_text_is_not_raw(text: str):
    assert not looks_raw(text)


def paths(reply: Reply) -> list[str]:
    return [body.path for body in bodies(reply, Acknowledged)]


@pytest.mark.req("PC2-FR-14")
async def test_a_live_text_stops_before_its_first_raw_word_and_is_replaced():
    pieces = ["Shop ", "says ", "beans, via ", "ask_", "shop ", "and more."]
    lead = ScriptedModel(
        asks("shop"), Line("".join(pieces), pieces=pieces, pace=0.1), "Shop says beans."
    )
    kit = small_kit(lead, {"shop": answering("beans")})
    reply = await run_turn("one thing", ALICE, kit)
    read = [body.text for body in bodies(reply, Text, TextReplaced)]
    assert "ask_" not in "".join(read) and "Shop says " in "".join(read)
    assert (
        reply.text == transcript(reply.events).answer == "Shop says beans." and paths(reply) == []
    )


async def test_a_preamble_with_machine_words_is_replaced_by_the_cards_line():
    kit = small_kit(
        [asks("shop", text="Calling ask_shop now."), "Beans."], {"shop": answering("beans")}
    )
    reply = await run_turn("one thing", ALICE, kit)
    assert reply.preamble == "One moment, I'm looking into that."


async def test_a_failure_made_good_by_a_later_answer_owes_nothing():
    replies = iter([Line(error=OSError("x")), Line("900 points")])
    lead = ScriptedModel(asks("rewards"), asks("rewards"), "You have 900 points.")
    kit = small_kit(lead, {"rewards": ScriptedModel(lambda _: next(replies))})
    reply = await run_turn("my points", ALICE, kit)
    assert reply.text == "You have 900 points." and paths(reply) == []
