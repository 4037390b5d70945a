"""Other people's data, planted in every scene: envelopes about the wrong principal, and a neighbour
who asks at the same time.

Every mark is unique to its scene. Who looks for them needs to know their form, and nothing of how
the kit keeps them out.
"""

import random
import re
from collections import Counter
from collections.abc import Mapping

from kit.core.context import Principal, Session
from kit.core.envelope import CacheMeta, EnricherRequest, EnricherResponse, FailedSource
from kit.models.scripted import Line
from tests.chaos.scene import Fate, Scene
from tests.kits import ALICE

ENVELOPE = re.compile(r"Zq\d+E\w+")
"""A mark of an envelope that was about somebody else: it may stand nowhere."""
ANY = re.compile(r"Zq\d+[EN]\w+")
NEIGHBOUR = re.compile(r"Zq(\d+)N\w+")
Envelope = EnricherResponse[Mapping[str, object]]


def neighbour(scene: Scene) -> Session:
    """Someone else of the same tenant, whose turn runs beside the scene, with the same agents and the same tools."""
    return Session(
        id=f"n{scene.seed}",
        principal=Principal(tenant_id=ALICE.principal.tenant_id, user_id=f"neighbour{scene.seed}"),
    )


def said_by(scene: Scene) -> str:
    """What stands in all that the neighbour asks, is shown and is told."""
    return f"Zq{scene.seed}Nword"


def neighbours_line(scene: Scene, answered: bool, *, leads: bool) -> Line:
    """The neighbour's models: ask the first agent of the scene, look something up, tell what was found."""
    if answered:
        return Line(f"The neighbour's {said_by(scene)} came to 12.", delay=0.05)
    if leads:
        return Line(
            "One moment.",
            calls=[
                (
                    f"ask_{scene.fates[0].agent}",
                    {"query": f"my {said_by(scene)}", "intent_count": 1},
                )
            ],
        )
    return Line(calls=[("lookup", {})], delay=0.05)


def owned(request: EnricherRequest, text: str, status: str = "ok") -> Envelope:
    """An honest envelope."""
    return _envelope(request, request.principal or ALICE.principal, text, status)


def foreign(request: EnricherRequest, scene: Scene, fate: Fate) -> Envelope:
    """An envelope about another principal: far off or hardly to be told apart, whole, partial or
    broken, full of marks."""
    mark = f"Zq{scene.seed}E{scene.fates.index(fate)}"
    rng = random.Random(mark)
    me = ALICE.principal
    who = rng.choice(
        [
            Principal(tenant_id=me.tenant_id, user_id=f"{mark}user"),
            Principal(tenant_id=f"{mark}tenant", user_id=me.user_id),
            Principal(tenant_id=me.tenant_id, user_id=me.user_id.upper()),
            Principal(tenant_id=f"{me.tenant_id} ", user_id=me.user_id),
            Principal(tenant_id=me.user_id, user_id=me.tenant_id),
        ]
    )
    reply = _envelope(request, who, f"{mark}text", rng.choice(["ok", "ok", "partial", "error"]))
    sources = (FailedSource(source=f"{mark}source", message=f"{mark}message"),)
    version = rng.choice(["1.0.0", "1.7.0", "9.0.0"])
    cache = CacheMeta(cached=True, key=f"{mark}key")
    return reply.model_copy(
        update={
            "partial": sources,
            "version": version,
            "cache_meta": cache,
            "signature": f"{mark}sig",
        }
    )


def _envelope(request: EnricherRequest, who: Principal, text: str, status: str) -> Envelope:
    article = {
        "id": f"{text}id",
        "topic": text,
        "title": f"About {text}",
        "text": f"It came to {text}.",
    }
    payload = {"match": "named", "topic": text, "found": 1, "articles": [article]}
    return Envelope.model_validate(
        {
            "status": status,
            "domain_type": request.domain_type,
            "enricher_id": request.enricher_id,
            "version": request.version,
            "principal": who,
            "payload": payload,
        }
    )


def stored(rows: list[tuple[object, ...]]) -> Counter[str]:
    """Marks in rows of a store: an envelope's anywhere, a neighbour's outside of that neighbour's own session."""
    found: Counter[str] = Counter()
    for row in rows:
        text = str(row)
        found.update(ENVELOPE.findall(text))
        found.update(mark[0] for mark in NEIGHBOUR.finditer(text) if f"n{mark[1]}" not in row)
    return found
