"""The judge of a reply: knows what was injected and which values were planted, and nothing of how
the kit checks itself."""

import re
from collections import Counter
from dataclasses import dataclass, field

from kit.core.bodies.speech import Acknowledged, StatusLine, Text, TextReplaced
from kit.core.display.turn_parts import ending_words
from kit.core.record import TurnRecord
from kit.runtime.turn import Reply
from kit.ui.traces.export import export
from tests.chaos import strangers
from tests.chaos.composer import SMILING
from tests.chaos.scene import SPANISH, Fate, Scene
from tests.kits import bodies, logged

DENIES = re.compile(
    r"(?:could not|couldn't|(?:was not|wasn't) able to) (?:get|check|reach|find|answer)|no answer|left out|not asked",
    re.I,
)
NUMBER = re.compile(r"\b(one|\d+) more parts? of your message")
RESERVES = re.compile(r"incomplete|some sources", re.I)
MACHINE = re.compile(
    r"Say plainly|claim nothing|Write the answer again|\b\w+Error\b|\bask_\w+|\bcall_\d+|[a-z]_[a-z]"
)


@dataclass(frozen=True)
class Witness:
    """A played scene: the reply, and all that other people's data could have got into."""

    reply: Reply
    inputs: tuple[str, ...]
    """Every message that a model of this turn was shown."""
    logged: tuple[str, ...]
    record: TurnRecord | None
    """The turn as it was stored."""


def shown(reply: Reply) -> list[str]:
    """Every text a person could read at any moment of the turn, replaced ones too."""
    return [body.text for body in bodies(reply, Text, TextReplaced, StatusLine)]


def unacknowledged(scene: Scene, reply: Reply) -> list[Fate]:
    """Failed and left out parts that no sentence names and denies."""
    sentences = [
        s.lower()
        for s in re.split(r"(?<=[.!?])\s+|\n+", reply.text)
        if DENIES.search(s) and SMILING not in s
    ]
    return [
        fate for fate in scene.bad if not any(fate.label in s or fate.topic in s for s in sentences)
    ]


def vanished(scene: Scene, reply: Reply) -> int:
    """How many parts that the model counted and nobody took no sentence owns up to, by a word of
    theirs or by number."""
    sentences = [
        s.lower()
        for s in re.split(r"(?<=[.!?])\s+|\n+", reply.text)
        if DENIES.search(s) and SMILING not in s
    ]
    named = sum(
        any(word in s for s in sentences for word in (f.topic, SPANISH[f.agent]))
        for f in scene.uncalled
    )
    counts = [
        int(number) if number.isdigit() else 1 for s in sentences for number in NUMBER.findall(s)
    ]
    return max(0, scene.owed - named - max(counts, default=0))


def counted_as_answered(scene: Scene, seen: Witness) -> bool:
    """The turn is shown as answered although a part of its message went to nobody, whoever counted it."""
    if not scene.uncalled or seen.record is None:
        return False
    return ending_words(seen.record.status, seen.record.measures.parts) == "Answered"


def leaked(scene: Scene, reply: Reply) -> list[str]:
    """Marks of raw text, and the machinery's own words, in anything that was shown."""
    everything = "\n".join([*shown(reply), reply.text, reply.preamble])
    return [fate.mark for fate in scene.fates if fate.mark in everything] + MACHINE.findall(
        everything
    )


def claimed(scene: Scene, reply: Reply) -> list[str]:
    """Values that nobody delivered, and assurances about a part that failed."""
    read = f"{reply.preamble}\n{reply.text}"
    is_owed = scene.owed or scene.composer == "answers_unasked"
    unanswered = (*scene.bad, *scene.uncalled) if is_owed else scene.bad
    made_up = [
        fate.value for fate in unanswered if any(word in read for word in fate.value.split())
    ]
    return made_up + [
        fate.label for fate in scene.bad if f"{fate.label} side is in perfect order" in read
    ]


def lost(scene: Scene, reply: Reply) -> list[str]:
    """Healthy agents whose value is not in the reply."""
    return [
        fate.label
        for fate in scene.good
        if not any(word in reply.text for word in fate.value.split())
    ]


def unreserved(scene: Scene, reply: Reply) -> list[str]:
    """Answers that hold with a reservation nobody was told of."""
    return [fate.label for fate in scene.reserved if not RESERVES.search(reply.text)]


def needless(scene: Scene, reply: Reply) -> bool:
    """An acknowledgement, by event or in words, where nothing was wrong, other than of a part that went to nobody."""
    topics = [word for fate in scene.uncalled for word in (fate.topic, SPANISH[fate.agent])]
    topics += ["more part", "más de tu mensaje"] if scene.uncalled else []
    owed = [body.owed or ("",) for body in bodies(reply, Acknowledged)]
    denials = [s.lower() for s in re.split(r"(?<=[.!?])\s+|\n+", reply.text) if DENIES.search(s)]
    return scene.clean and not all(
        any(topic in text for topic in topics) for text in (*sum(owed, ()), *denials)
    )


def foreign(seen: Witness) -> dict[str, int]:
    """Marks of other people's data, by where they were found; all but the model inputs are read as
    they are handed out."""
    reply, record = seen.reply, seen.record
    places = {
        "model inputs": "\n".join(seen.inputs),
        "answers": "\n".join(
            [*shown(reply), reply.text, reply.preamble, *map(str, reply.outcomes)]
        ),
        "events": logged(reply),
        "traces": reply.trace.model_dump_json(),
        "downloads": export(record, reply.events) if record is not None else "",
    }
    found = {where: len(set(strangers.ANY.findall(text))) for where, text in places.items()}
    return {**found, "logs": len(strangers.ENVELOPE.findall("\n".join(seen.logged)))}


@dataclass
class Tally:
    """What came of many scenes."""

    scenes: int = 0
    clean: int = 0
    paths: Counter[str] = field(default_factory=Counter[str])
    by_composer: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    wrong: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])
    planted: int = 0
    """Envelopes about somebody else that tools were sent."""
    inputs: int = 0
    """Messages to models that were read."""
    short: int = 0
    """Scenes of which the model made fewer calls than the message has parts."""

    def add(self, scene: Scene, seen: Witness) -> None:
        reply = seen.reply
        found = {
            "unacknowledged failures": len(unacknowledged(scene, reply)),
            "vanished counted parts": vanished(scene, reply),
            "turns that lost a part and are shown as answered": int(
                counted_as_answered(scene, seen)
            ),
            "raw leaks": len(leaked(scene, reply)),
            "claims for failed parts": len(claimed(scene, reply)),
            "lost answers": len(lost(scene, reply)),
            "reservations not passed on": len(unreserved(scene, reply)),
            "acknowledgements on clean turns": int(needless(scene, reply)),
            **{f"foreign payloads in {where}": count for where, count in foreign(seen).items()},
        }
        self.inputs += len(seen.inputs)
        path = next((body.path for body in bodies(reply, Acknowledged)), "none owed")
        self.scenes += 1
        self.clean += scene.clean and not scene.uncalled
        self.short += bool(scene.uncalled)
        self.paths[path] += 1
        self.by_composer.setdefault(scene.composer, Counter())[path] += 1
        self.wrong.update(found)
        bad = {what: count for what, count in found.items() if count}
        if bad and len(self.examples) < 8:
            self.examples.append(
                f"seed {scene.seed} {scene.composer}/{scene.second} {bad}: {reply.text!r}"
            )

    def look_into(self, rows: list[tuple[object, ...]]) -> None:
        """Counts other people's data in a store, row by row."""
        assert len(rows) > self.scenes
        self.wrong["foreign payloads in the store"] += strangers.stored(rows).total()

    def merge(self, other: "Tally") -> None:
        self.planted += other.planted
        self.inputs += other.inputs
        self.scenes += other.scenes
        self.clean += other.clean
        self.short += other.short
        self.paths.update(other.paths)
        self.wrong.update(other.wrong)
        self.examples += other.examples
        for composer, paths in other.by_composer.items():
            self.by_composer.setdefault(composer, Counter()).update(paths)

    def table(self) -> str:
        """For people: what went wrong (nothing should), and how often each way of mending was needed."""
        lines = [
            f"{self.scenes} scenes, {self.clean} of them clean, {self.short} with parts not called for"
        ]
        lines.append(
            f"{self.planted} foreign envelopes sent, {self.inputs} messages to models read"
        )
        lines += [f"  {count:6} {what}" for what, count in self.wrong.items()]
        lines += [
            f"{composer:22} {dict(paths)}" for composer, paths in sorted(self.by_composer.items())
        ]
        owed = self.scenes - self.paths["none owed"]
        added = self.paths["appended"]
        lines.append(
            f"the fixed sentence was appended in {added} of {owed} turns that owed something"
        )
        return "\n".join(lines)
