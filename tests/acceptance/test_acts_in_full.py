"""The stand-in acts by words that say the whole of it, at once, and by nothing else: whatever it misreads is done."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Literal

import pytest

from kit.core.card import AgentCard
from kit.patterns import PATTERNS
from kit.runtime.act_ledger import UNCERTAIN
from kit.tools.tool import LimitedTool, ToolLimits
from kit.wire import Kit, open_kit
from tests.kits import OFFLINE, lead_over

HELD_BACK = "I did nothing for this:"
WHO = "For that I need one of these: Ana, Ben, Carla."


class Bank:
    """Two agents: one says a balance, one transfers money, once for each call and without a question."""

    def __init__(self, *says: object):
        self.transfers: list[tuple[int, str]] = []
        self.says = says
        """What the tool that transfers returns, in place of a sentence."""

    async def transfer_money(self, amount: int, to: Literal["Ana", "Ben", "Carla"]) -> object:
        """Transfers an amount of euros to somebody."""
        # A smaller amount takes longer: side by side the larger one would be done first.
        await asyncio.sleep(1 / amount)
        self.transfers.append((amount, to))
        for words in self.says:
            return words
        return f"{amount} euros were transferred to {to}."

    async def account_balance(self) -> str:
        """Says the balance of the account."""
        return "The balance of the account is 7,623 euros."

    async def sit(
        self, *messages: str, pattern: str = "mediated", has_one_desk: bool = False
    ) -> str:
        """Plays one sitting; returns the answer to its last message."""
        async with self.opened(has_one_desk=has_one_desk) as kit:
            text = ""
            for message in messages:
                text = (await kit.ask(message, kit.session("sitting"), pattern)).text
        return text

    def opened(self, *, has_one_desk: bool = False) -> AbstractAsyncContextManager[Kit]:
        """The kit over the bank. `has_one_desk`: one agent has both tools."""
        cards = [
            AgentCard(
                id="balances",
                description="Knows the balance of the account: how much money is left.",
                model="offline",
                tools=("account_balance",),
            ),
            AgentCard(
                id="transfers",
                description="Transfers, sends and pays money to people.",
                model="offline",
                tools=("transfer_money",),
                requests=("transfer 200 euros to Ana", "pay Ben 30 euros"),
            ),
        ]
        if has_one_desk:
            desk = AgentCard(
                id="desk",
                description="Transfers, sends and pays money to people, and says what the account holds.",
                model="offline",
                tools=("transfer_money", "account_balance"),
                requests=(
                    "transfer 200 euros to Ana",
                    "pay Ben 30 euros",
                    "how much money do I have",
                ),
            )
            cards = [desk]
        once = LimitedTool(self.transfer_money, ToolLimits(once=True))
        return open_kit(OFFLINE, deck=lead_over(*cards), tools=[self.account_balance, once])


@pytest.mark.parametrize(
    "message",
    [
        "Transfer 50 euros to Ana",
        "Can you send 50 euros to Ana?",
        "please transfer 50 euros to Ana if you can",
        "how much money is left, and transfer 50 euros to Ana",
    ],
)
async def test_what_is_said_in_full_is_done(message: str):
    bank = Bank()
    assert "50 euros were transferred to Ana." in await bank.sit(message)
    assert bank.transfers == [(50, "Ana")]


@pytest.mark.parametrize(
    "sitting",
    [
        ("transfer 50 euros", "Ana"),
        ("transfer 50 euros", "to Ana, please"),
        ("transfer to Ana", "50"),
        ("send money", "50 euros", "to Ana"),
        ("transfer 20 euros", "transfer 50 euros", "Ana"),
    ],
)
async def test_what_an_act_lacks_can_be_said_in_the_next_message(sitting: tuple[str, ...]):
    bank = Bank()
    assert "50 euros were transferred to Ana." in await bank.sit(*sitting)
    assert bank.transfers == [(50, "Ana")]


@pytest.mark.parametrize(
    "answer", ["no, wait", "to nobody", "Ana or Ben", "Ana tomorrow", "not to Ana"]
)
async def test_an_answer_that_says_something_else_does_nothing(answer: str):
    bank = Bank()
    assert HELD_BACK in await bank.sit("transfer 50 euros", answer)
    assert bank.transfers == []


@pytest.mark.parametrize(
    "message",
    [
        "how much money do I have and send 30 euros to Ben",
        "send 30 euros to Ben. Also, how much money do I have?",
    ],
)
async def test_a_question_beside_an_act_is_answered_by_the_agent_that_does_both(message: str):
    bank = Bank()
    answer = await bank.sit(message, has_one_desk=True)
    assert bank.transfers == [(30, "Ben")]
    assert "30 euros were transferred to Ben." in answer
    assert "7,623" in answer


async def test_an_act_in_full_is_done_after_a_question_of_the_assistant_too():
    bank = Bank()
    sitting = ("hi", "transfer 50 euros to Ana")
    assert "50 euros were" in await bank.sit(*sitting, pattern="monolith")
    assert bank.transfers == [(50, "Ana")]


@pytest.mark.parametrize(
    ("message", "asked_for"),
    [
        ("send money to Ben", "For that I need the amount."),
        ("Transfer 12.50 euros to Carla", "I cannot tell what “12.5” means for it."),
        ("transfer 50 euros", WHO),
        ("transfer 50 euros to my landlord", "I cannot tell what “landlord” means for it."),
    ],
)
async def test_nothing_is_made_up_for_an_act(message: str, asked_for: str):
    bank = Bank()
    assert asked_for in await bank.sit(message)
    assert bank.transfers == []


@pytest.mark.parametrize(
    "message",
    [
        "Undo the transfer of 60 euros to Ana",
        "please cancel the last transfer of 60 euros to Ana",
        "Transfer 60 euros to Ana tomorrow",
        "If my balance is over 20000, transfer 60 euros to Ana",
        "Transfer 60 euros to Ana unless the balance is too low",
        "Transfer 60 euros to Ana when my balance is over 20000",
        "Transfer 60 euros to Ana, no wait, 150",
        "Transfer 60 euros to Ana or Ben",
        "Transfer 60 cents to Ana",
        "I sent 60 euros to Ana yesterday",
        "Transfer 60 euros to Ana, but not to Ben",
        "Forget the 60 euros to Ana",
        "Should I transfer 60 euros to Ana?",
    ],
)
async def test_what_undoes_waits_or_wonders_does_nothing(message: str):
    bank = Bank()
    text = await bank.sit(message)
    assert bank.transfers == [] and "transferred" not in text


async def test_acts_of_one_message_are_told_in_the_order_in_which_they_were_done():
    bank = Bank()
    text = await bank.sit("Transfer 20 euros to Ana and 30 euros to Ben")
    assert bank.transfers == [(20, "Ana"), (30, "Ben")]
    assert text.index("20 euros") < text.index("30 euros")


@pytest.mark.parametrize("correction", ["no, 150 instead", "make it 150 then", "and 150 to Ben"])
async def test_a_change_to_an_act_is_no_act(correction: str):
    bank = Bank()
    assert (await bank.sit("Transfer 50 euros to Ana", correction)).startswith(HELD_BACK)
    assert (await bank.sit("Transfer 50 euros to Ana", correction, "try again")).startswith(
        HELD_BACK
    )
    assert bank.transfers == [(50, "Ana"), (50, "Ana")]


class SlowBank(Bank):
    """A bank whose transfers are done at once and never end."""

    def __init__(self):
        super().__init__()
        self.has_begun = asyncio.Event()

    async def transfer_money(self, amount: int, to: Literal["Ana", "Ben", "Carla"]) -> str:
        """Transfers an amount of euros to somebody."""
        self.transfers.append((amount, to))
        self.has_begun.set()
        await asyncio.Event().wait()
        return ""


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("pattern", list(PATTERNS))
async def test_trying_an_act_again_that_was_stopped_says_in_each_pattern_that_its_end_is_not_known(
    pattern: str,
):
    bank = SlowBank()
    async with bank.opened() as kit:
        session = kit.session("sitting")
        message = "what is my balance and transfer 50 euros to Ana"
        if pattern in ("classifier_gateway", "a2a"):
            # The one passes whole messages on, the other tries again what has not come back.
            message = "transfer 50 euros to Ana"
        turn = kit.ask(message, session, pattern)
        await asyncio.wait_for(bank.has_begun.wait(), 20)
        turn.cancel()
        await turn
        again = await kit.ask("try again", session, pattern)
    assert bank.transfers == [(50, "Ana")]
    assert UNCERTAIN in again.text


@pytest.mark.parametrize("says", ["", None, True])
async def test_an_act_is_told_as_done_where_its_tool_says_nothing_of_it(says: object) -> None:
    bank = Bank(says)
    reply = await bank.sit("transfer 200 euros to Ana")
    assert bank.transfers == [(200, "Ana")]
    assert reply == "“Transfer money” was done; it said nothing else."
    both = await bank.sit("what is the balance and transfer 30 euros to Ben")
    assert "7,623 euros" in both and both.count("was done") == 1 and "null" not in both


async def test_an_act_whose_tool_returns_a_machines_error_may_or_may_not_have_been_done() -> None:
    bank = Bank("Error: HTTP 503 from the backend, nothing was written")
    reply = await bank.sit("transfer 200 euros to Ana")
    assert "HTTP" not in reply and UNCERTAIN in reply
    again = await bank.sit("transfer 200 euros to Ana", "try again")
    assert UNCERTAIN in again and bank.transfers == [(200, "Ana"), (200, "Ana")]
