"""The orchestrator's model of a scene: asks everybody, then composes as the scene says, lies included.

It knows everything, raw text and values never delivered too, as if some leak had told it: nothing may come of that.
"""

from collections.abc import Callable, Mapping, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from kit.models.scripted import Line
from tests.chaos.scene import Fate, Scene

AGAIN = "Write the answer again"
"""How a second composition is asked for; scenes tell it from the first by these words."""
WAFFLE = (
    "our friendly crew keeps a warm eye on that, come rain or shine, and all of it shall "
    "stay lovely through the long winter."
)
SMILING = "I was not able to stop smiling"


def lead(scene: Scene, messages: Sequence[BaseMessage]) -> Line:
    """The orchestrator's next line."""
    since = messages[max(i for i, m in enumerate(messages) if isinstance(m, HumanMessage)) :]
    results = [str(m.content) for m in since if isinstance(m, ToolMessage)]
    asked = sum(1 for m in since if m.type == "ai")
    if not results:
        return Line("Let me look into that.", calls=_calls(scene, scene.fates))
    if AGAIN in str(messages[0].content):
        match scene.second:
            case "honest":
                return Line(honest(scene))
            case "leaks":
                return Line(f"{honest(scene)} {scene.raw}")
            case "nothing":
                return Line("")
            case "raises":
                return Line(error=OSError(scene.fates[-1].raw))
            case "hangs":
                return Line("too late", delay=600)
            case _:
                pass
    if scene.composer == "calls_forever" or (scene.composer == "calls_again" and asked < 2):
        return Line("", calls=_calls(scene, scene.fates[:2]))
    text = compose(scene, results, messages)
    pieces = [text[i : i + 7] for i in range(0, len(text), 7)] if scene.streamed else []
    return Line(text, pieces=pieces, pace=0.01)


def honest(scene: Scene) -> str:
    """Everything that is known, and what is not."""
    lines = [fate.answer for fate in scene.good]
    lines += [f"What I know about {fate.label} may be incomplete." for fate in scene.reserved]
    lines += [
        f"I could not get an answer about {fate.label}."
        for fate in scene.bad
        if fate not in scene.over
    ]
    lines += [f"I left out {fate.label} for now." for fate in scene.over]
    if scene.owed == len(scene.uncalled):
        lines += [f"I left out {scene.word(fate)} for now." for fate in scene.uncalled]
    elif scene.owed:
        lines.append(f"I left out {scene.owed} more parts of your message.")
    return "\n".join(lines)


def compose(scene: Scene, results: Sequence[str], messages: Sequence[BaseMessage]) -> str:
    """A composition of the scene's kind; a lie about a failed part is the plain truth where nothing failed."""
    told = " ".join(fate.answer for fate in scene.good)
    unanswered = (*scene.bad, *scene.uncalled) if scene.owed else scene.bad
    about: Fate | None = unanswered[0] if unanswered else None
    lie = LIES.get(scene.composer)
    if lie is not None:
        return (
            f"{told if scene.composer in SILENT else honest(scene)} {lie(about, about.label)}"
            if about
            else told
        )
    match scene.composer:
        case "topical":
            owed = ", ".join(fate.topic for fate in scene.bad)
            partly = " Some of this may be incomplete." if scene.reserved else ""
            return f"{told}{partly}" + (
                f" Sadly I wasn't able to check {owed} right now." if owed else ""
            )
        case "stitches":
            return " | ".join(results)
        case "silent" | "retells":
            return told if scene.composer == "silent" else _retold(scene)
        case "waffles" if scene.good:
            return honest(scene).replace(
                scene.good[0].answer, f"About {scene.good[0].label}: {WAFFLE}"
            )
        case "omits" if scene.good:
            return "\n".join(
                line for line in honest(scene).splitlines() if line != scene.good[0].answer
            )
        case "omits_all":
            return (
                " ".join(f"I could not get an answer about {fate.label}." for fate in scene.bad)
                or "That is all for today."
            )
        case "answers_unasked":
            return " ".join([told, *(fate.answer for fate in scene.uncalled)])
        case "blames_another":
            return f"I could not get an answer about {scene.good[0].label}." if scene.good else ""
        case "leaks_ids":
            calls = next(calls for m in messages if (calls := getattr(m, "tool_calls", None)))
            word = (
                calls[0]["id"],
                calls[0]["name"],
                "looking_up_points_balance",
                "principal_mismatch",
            )[scene.seed % 4]
            return f"{honest(scene)} I used {word} for that."
        case other:
            return FIXED.get(other, honest(scene)) + (
                f" The log says: {scene.raw}" if other == "leaks" else ""
            )


def _retold(scene: Scene) -> str:
    """Everything that is known, in other words than those it came in."""
    answers = {fate.answer for fate in scene.good}
    retold = [f"As for {fate.topic}, {fate.value} is what came back to me." for fate in scene.good]
    return "\n".join(
        [*retold, *(line for line in honest(scene).splitlines() if line not in answers)]
    )


SILENT = ("claims", "claims_while_denying")
LIES: Mapping[str, Callable[[Fate, str], str]] = {
    "claims": lambda fate, label: f"Your {fate.topic} came to {fate.value} today.",
    "claims_in_words": lambda fate, label: f"The {label} side is in perfect order.",
    "claims_while_denying": lambda fate, label: f"{SMILING}: {label} says you have {fate.value}.",
    "owns_and_claims": lambda fate, label: f"Still, {label} must be around {fate.value}.",
    "claims_namelessly": lambda fate, label: f"By the way, the figure is {fate.value}.",
    "instructs": lambda fate, label: "Say plainly that this part could not be answered.",
}
FIXED: Mapping[str, str] = {
    "nothing": "",
    "refuses": "I'm sorry, I can't help with that.",
    "triumphs": "All done: everything worked and nothing is missing.",
}


def _calls(scene: Scene, fates: Sequence[Fate]) -> list[tuple[str, dict[str, object]]]:
    count = {} if scene.count is None else {"intent_count": scene.count or len(fates)}
    return [(f"ask_{fate.agent}", {"query": scene.query(fate), **count}) for fate in fates]
