"""The tools of the manga deck: what each asks of the context service, as data, and the factory that
opens its client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kit.tools.enricher import LIMITS, Enrich, EnricherSpec, HttpEnrich, enricher_tool
from kit.tools.tool import ConfiguredTool, Toolbox
from kit.tools.tool_factory import ToolSetup, tool_factory
from kit.worlds.manga.wording import WORDINGS
from kit.worlds.service.clients import KEY, open_client
from kit.worlds.service.parameters import search_properties

_TITLES = "Title ids, titles or words, such as mg-0012 or dark fantasy."
SKILLS: tuple[EnricherSpec, ...] = (
    EnricherSpec(
        id="catalog-search",
        description="Find titles of the library by genre, theme, story, studio or name.",
        domain_type="manga",
        enricher_id="catalog",
        wording=WORDINGS["manga", "catalog"],
        properties=search_properties("What to look for, such as dark fantasy or a title."),
        statuses=("searching_catalog",),
    ),
    EnricherSpec(
        id="user-prefs-reco",
        description="What the reader likes and has read, and unread titles that fit.",
        domain_type="manga",
        enricher_id="prefs",
        wording=WORDINGS["manga", "prefs"],
        properties=search_properties("A genre or theme to narrow it to."),
        statuses=("looking_up_tastes",),
    ),
    EnricherSpec(
        id="review-sentiment",
        description="What reviewers make of titles: score, praise and complaint, to compare them by.",
        domain_type="manga",
        enricher_id="sentiment",
        wording=WORDINGS["manga", "sentiment"],
        properties=search_properties(_TITLES),
        statuses=("reading_reviews",),
    ),
    EnricherSpec(
        id="cross-title-link",
        description="How titles hang together: same studio, shared world, what is read after what.",
        domain_type="manga",
        enricher_id="links",
        wording=WORDINGS["manga", "links"],
        properties=search_properties(_TITLES),
        statuses=("searching_catalog",),
    ),
    EnricherSpec(
        id="support-policy",
        description="The spoiler rules, and what may be told of each story arc of a title.",
        domain_type="manga",
        enricher_id="policy",
        wording=WORDINGS["manga", "policy"],
        properties=search_properties(_TITLES),
        statuses=("checking_spoiler_rules",),
    ),
)

TOOL_IDS = tuple(spec.id for spec in SKILLS)


def toolbox(enrich: Enrich, *, key: str | None = None) -> Toolbox:
    """The tools over a client of the context service. `key` signs envelopes."""

    def enricher(spec: EnricherSpec) -> ConfiguredTool:
        return ConfiguredTool(lambda config: enricher_tool(spec, enrich, config, key), LIMITS)

    return {spec.id: enricher(spec) for spec in SKILLS}


@tool_factory(*TOOL_IDS)
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """The tools over the embedded service, or over the one that KIT_UPSTREAM_URL names."""
    from kit.worlds.manga.services import context_service

    key = setup.environment.get(KEY)
    library = setup.settings.data.parent / "manga"
    async with open_client(
        setup, "context", lambda: context_service(library, setup.settings.pace, key)
    ) as context:
        yield toolbox(HttpEnrich(context), key=key)
