"""The contract of parallel failure as data: who is asked, what goes wrong, and what is asked of the system."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

ChildFault = Literal[
    "none",
    "raises",
    "hangs",
    "cancels",
    "says_nothing",
    "refuses",
    "error_as_text",
    "breaks_off",
    "foreign_data",
    "leaks_secret",
    "asks_back",
    "tool_raises",
    "never_ends",
    "acts",
    "kills",
]
"""What a child does. `acts` and `kills` belong together: an act, and the end of the process after it."""
ModelFault = Literal[
    "none",
    "unknown_tool",
    "same_id",
    "broken_arguments",
    "skips_last",
    "storm_passes",
    "storm_stays",
]
"""What the orchestrator's model, or its endpoint, does."""
Question = Literal["survive", "missing", "true", "raw", "running", "cost"]
QUESTIONS: dict[Question, str] = {
    "survive": "Did the answers of the others reach the user?",
    "missing": "Does the user read what is missing?",
    "true": "Is nothing untrue said?",
    "raw": "Is nothing raw shown: no secret, no error text?",
    "running": "Is nothing left running?",
    "cost": "Did it stay within what it may cost?",
}
ALL: tuple[Question, ...] = tuple(QUESTIONS)
Composer = Literal["faithful", "claiming"]
COMPOSERS: dict[Composer, str] = {
    "faithful": "repeats what it was given, word by word",
    "claiming": "words the answers, and claims for everything else that all is well",
}


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """One child, and what it is to do."""

    name: str
    fault: ChildFault = "none"

    @property
    def value(self) -> str:
        """The reference that its answer holds, which nobody else can know."""
        return f"{self.name[:3].upper()}-{_number(self.name)}"

    @property
    def lie(self) -> str:
        """The reference that the claiming composer makes up for it."""
        return f"{self.name[:3].upper()}-0{_number(self.name)}"

    @property
    def answer(self) -> str:
        return f"Your {self.name} reference is {self.value}."

    @property
    def answers(self) -> bool:
        """Whether its answer belongs into the user's text."""
        return self.fault in ("none", "acts", "kills")

    @property
    def has_model(self) -> bool:
        """Whether it is an agent with a model and a tool of its own, and not only a function."""
        return self.fault in ("tool_raises", "never_ends", "foreign_data")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing that goes wrong in a turn."""

    id: str
    sentence: str
    children: tuple[ChildPlan, ...]
    model: ModelFault = "none"
    questions: tuple[Question, ...] = ALL
    seconds: float | None = None
    """How long a child may take; the system is asked to hold it to that."""
    cap: int | None = None
    """How many children the system may ask in a turn."""
    model_calls: int | None = None
    """How many model calls the whole tree may make."""
    most_calls: int = 8
    """Model calls above which the turn counts as too dear."""
    stops: bool = False
    """Whether the user stops the turn while a child runs."""

    @property
    def kills(self) -> bool:
        """Whether the process dies in the middle, and the same session is then asked again."""
        return any(child.fault == "kills" for child in self.children)

    @property
    def calls(self) -> tuple[ChildPlan, ...]:
        """The children that the model calls."""
        if self.model == "skips_last":
            return self.children[:-1]
        return self.children

    @property
    def message(self) -> str:
        """What the user asks."""
        if len(self.children) > 20:
            return "Please give me the reference of each of the hundred desks."
        # A question for each, so that a system that counts them can see which one got no call.
        questions = [f"What is my {child.name} reference?" for child in self.children]
        return " ".join(questions)


def _number(name: str) -> int:
    """Four digits of a child's own; a test looks that no two children share them."""
    return 1000 + crc32(name.encode()) % 8999


def _trio(fault: ChildFault) -> tuple[ChildPlan, ...]:
    """The child in the middle fails: one stands before it, one after."""
    return (ChildPlan("flights"), ChildPlan("hotels", fault), ChildPlan("trains"))


def _many(names: Sequence[str]) -> tuple[ChildPlan, ...]:
    return tuple([ChildPlan(name) for name in names])


_HUNDRED = _many([f"desk{number:03}" for number in range(1, 101)])
_EIGHT = ("flights", "hotels", "trains", "museums", "ferries", "concerts", "parking", "insurance")
_WELL = _trio("none")

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("all_well", "Nothing goes wrong.", _WELL),
    Scenario("raises", "One of three raises an error.", _trio("raises")),
    Scenario("hangs", "One of three never answers.", _trio("hangs"), seconds=2.0),
    Scenario("cancelled", "One of three is cancelled from within.", _trio("cancels")),
    Scenario("says_nothing", "One of three returns an empty text.", _trio("says_nothing")),
    Scenario("refuses", "One of three declines to answer.", _trio("refuses")),
    Scenario("error_as_text", "One of three returns an error as its text.", _trio("error_as_text")),
    Scenario(
        "breaks_off", "One of three breaks off in the middle of its text.", _trio("breaks_off")
    ),
    Scenario(
        "all_fail",
        "All three raise an error.",
        tuple([ChildPlan(name, "raises") for name in ("flights", "hotels", "trains")]),
    ),
    Scenario("leaks_secret", "The error of one holds a key and an address.", _trio("leaks_secret")),
    Scenario("asks_back", "One asks a question back instead of answering.", _trio("asks_back")),
    Scenario(
        "foreign_data",
        "One brings the data of another principal.",
        _trio("foreign_data"),
        most_calls=10,
    ),
    Scenario(
        "child_of_child",
        "The tool of one raises, a level deeper.",
        _trio("tool_raises"),
        most_calls=10,
    ),
    Scenario("over_cap", "The model calls eight where four are allowed.", _many(_EIGHT), cap=4),
    Scenario(
        "hundred",
        "A hundred are asked at once, and one raises.",
        (*_HUNDRED[:49], ChildPlan("desk050", "raises"), *_HUNDRED[50:]),
        cap=100,
    ),
    Scenario("storm_passes", "Each model call is refused once with 429.", _WELL, "storm_passes"),
    Scenario(
        "storm_stays",
        "The composing call is refused with 429 for good.",
        _WELL,
        "storm_stays",
        most_calls=16,
    ),
    Scenario(
        "unknown_tool", "The model calls a tool that does not exist, too.", _WELL, "unknown_tool"
    ),
    Scenario("same_id", "The model gives all its calls the same id.", _WELL, "same_id"),
    Scenario(
        "broken_arguments", "The arguments of one call are no JSON.", _WELL, "broken_arguments"
    ),
    Scenario("skips_one", "The model calls all but one of those it needs.", _WELL, "skips_last"),
    Scenario(
        "spend_cap",
        "Two agents never end; the tree may make eight model calls.",
        (
            ChildPlan("flights"),
            ChildPlan("hotels", "never_ends"),
            ChildPlan("trains", "never_ends"),
        ),
        model_calls=8,
        most_calls=12,
    ),
    Scenario(
        "killed",
        "The process is killed after an act, and the session is asked again.",
        (ChildPlan("flights"), ChildPlan("payments", "acts"), ChildPlan("hotels", "kills")),
    ),
    Scenario(
        "stopped",
        "The user stops the turn while one runs.",
        _trio("hangs"),
        questions=("raw", "running"),
        stops=True,
    ),
)
BY_ID = {scenario.id: scenario for scenario in SCENARIOS}
