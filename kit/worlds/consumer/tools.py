"""The tools of the consumer deck: what each asks of which service, as data, and the factory that
opens their clients."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kit.tools.enricher import LIMITS, Enrich, EnricherSpec, HttpEnrich, enricher_tool
from kit.tools.render import RenderSpec, render_tool
from kit.tools.tool import ConfiguredTool, Toolbox
from kit.tools.tool_factory import ToolSetup, tool_factory
from kit.worlds.consumer.support import (
    PATIENCE,
    Conversations,
    Episodes,
    HttpSupport,
    Support,
    support_tool,
)
from kit.worlds.consumer.wording import WORDINGS
from kit.worlds.consumer.world import World
from kit.worlds.service.clients import KEY, open_client
from kit.worlds.service.parameters import search_properties

_STATUS = {
    "type": "string",
    "enum": ["accepted", "pending", "rejected"],
    "description": "Only receipts in this state.",
}

SPECS: tuple[EnricherSpec, ...] = (
    EnricherSpec(
        id="search_offers",
        description="Find current offers and deals that pay points on products, by category, brand, product or store.",
        domain_type="shop",
        enricher_id="offers",
        wording=WORDINGS["shop", "offers"],
        properties=search_properties(
            "What to find offers for, such as coffee or a brand name.",
            brand="Brand name.",
            category="Category.",
        ),
        statuses=("searching_offers",),
    ),
    EnricherSpec(
        id="search_products",
        description="Find products and their prices in the catalogue, by category, brand or name.",
        domain_type="shop",
        enricher_id="products",
        wording=WORDINGS["shop", "products"],
        properties=search_properties(
            "What product to look for.", brand="Brand name.", category="Category."
        ),
        statuses=("searching_catalog",),
    ),
    EnricherSpec(
        id="get_purchase_history",
        description="What the user bought before and what was spent on it: how much, how often and when, with store "
        "and price, from the user's receipts.",
        domain_type="shop",
        enricher_id="purchases",
        wording=WORDINGS["shop", "purchases"],
        properties=search_properties("A product, brand, category or store to narrow it to."),
        statuses=("looking_up_purchase_history",),
    ),
    EnricherSpec(
        id="search_help_articles",
        description="Find help articles that explain how the app works and what to do about a problem.",
        domain_type="support",
        enricher_id="articles",
        wording=WORDINGS["support", "articles"],
        properties=search_properties(
            "The question or problem in the user's words.", category="Support topic."
        ),
        statuses=("reading_help_articles",),
    ),
    EnricherSpec(
        id="get_user_points",
        description="How many points the user has: the balance now, the points pending, and what "
        "was earned and spent lately.",
        domain_type="rewards",
        enricher_id="balance",
        wording=WORDINGS["rewards", "balance"],
        statuses=("looking_up_points_balance",),
    ),
    EnricherSpec(
        id="get_redemption_history",
        description="Past redemptions: what the user redeemed or cashed in before, last year or lately, when, "
        "and if a gift card was delivered.",
        domain_type="rewards",
        enricher_id="redemptions",
        wording=WORDINGS["rewards", "redemptions"],
        properties=search_properties("A reward to narrow it to."),
        statuses=("looking_up_points_balance",),
    ),
    EnricherSpec(
        id="calculate_redemption",
        description="What the user's points are worth in dollars and what can be redeemed right now: whether a "
        "reward or gift card is affordable, and how many points are missing.",
        domain_type="rewards",
        enricher_id="quote",
        wording=WORDINGS["rewards", "quote"],
        properties=search_properties("The reward the user has in mind, such as a gift card."),
        statuses=("calculating_redemption",),
    ),
    EnricherSpec(
        id="get_points_by_method",
        description="How the user's points were earned: from receipts, games, referrals and "
        "bonuses, and how many were spent.",
        domain_type="rewards",
        enricher_id="by_method",
        wording=WORDINGS["rewards", "by_method"],
        statuses=("looking_up_points_balance",),
    ),
    EnricherSpec(
        id="list_receipts",
        description="The user's receipts, newest first, with store, date, total, points and "
        "state (accepted, pending, rejected).",
        domain_type="ereceipts",
        enricher_id="receipts",
        wording=WORDINGS["ereceipts", "receipts"],
        properties={
            **search_properties("A store, product or receipt number to narrow it to."),
            "status": _STATUS,
        },
        statuses=("matching_receipt",),
    ),
    EnricherSpec(
        id="match_receipt",
        description="Match one receipt with offers: which it met, which it missed and why; why "
        "it was rejected or is pending.",
        domain_type="ereceipts",
        enricher_id="match",
        wording=WORDINGS["ereceipts", "match"],
        properties={
            **search_properties("The store, product or receipt number it is about."),
            "status": _STATUS,
        },
        statuses=("matching_receipt",),
    ),
    EnricherSpec(
        id="get_receipt",
        description="One receipt in full: every line with quantity and price, its total, state and points.",
        domain_type="ereceipts",
        enricher_id="receipt",
        wording=WORDINGS["ereceipts", "receipt"],
        properties=search_properties("The receipt number, or the store or product it is about."),
        statuses=("matching_receipt",),
    ),
    EnricherSpec(
        id="list_games",
        description="Games that pay points, what they pay and until when.",
        domain_type="play",
        enricher_id="games",
        wording=WORDINGS["play", "games"],
        properties=search_properties("A game or a kind of game, such as puzzle or cards."),
        statuses=("looking_up_games",),
    ),
    EnricherSpec(
        id="get_game_progress",
        description="How far the user is in the games being played, points earned in them and the next goal.",
        domain_type="play",
        enricher_id="progress",
        wording=WORDINGS["play", "progress"],
        properties=search_properties("A game to narrow it to."),
        statuses=("looking_up_games",),
    ),
    EnricherSpec(
        id="get_offer_terms",
        description="The terms of an offer: how many to buy, where, until when, and the limit per account.",
        domain_type="offer_details",
        enricher_id="terms",
        wording=WORDINGS["offer_details", "terms"],
        properties=search_properties("The offer, product or brand whose terms are wanted."),
        statuses=("looking_up_offer_terms",),
    ),
    EnricherSpec(
        id="list_expiring_offers",
        description="Offers that end soon, the first to end first.",
        domain_type="offer_details",
        enricher_id="expiring",
        wording=WORDINGS["offer_details", "expiring"],
        properties={
            **search_properties("A category, brand or store to narrow it to."),
            "within_days": {
                "type": "integer",
                "description": "How many days ahead to look, 1 to 20.",
            },
        },
        statuses=("looking_up_offer_terms",),
    ),
    EnricherSpec(
        id="find_restaurants",
        description="Find restaurants nearby, by cuisine or name, with price, rating and distance.",
        domain_type="restaurants",
        enricher_id="restaurants",
        wording=WORDINGS["restaurants", "restaurants"],
        properties=search_properties(
            "A cuisine or restaurant, such as pizza or thai.", location="City to look in."
        ),
        statuses=("finding_restaurants",),
    ),
    EnricherSpec(
        id="get_restaurant_offers",
        description="Offers that pay points for eating out, by cuisine or restaurant.",
        domain_type="restaurants",
        enricher_id="offers",
        wording=WORDINGS["restaurants", "offers"],
        properties=search_properties("A cuisine or restaurant."),
        statuses=("finding_restaurants",),
    ),
    EnricherSpec(
        id="get_retailer",
        description="Facts about one retailer: its kind, number of stores, nearest store, "
        "opening hours, eReceipts and offers.",
        domain_type="retailer_context",
        enricher_id="retailer",
        wording=WORDINGS["retailer_context", "retailer"],
        properties=search_properties("The name of the retailer.", location="City to look in."),
        statuses=("looking_up_retailer",),
    ),
    EnricherSpec(
        id="list_retailers_near",
        description="Stores near the user, the nearest first, by kind of store or retailer name.",
        domain_type="retailer_context",
        enricher_id="stores",
        wording=WORDINGS["retailer_context", "stores"],
        properties=search_properties(
            "A retailer or kind of store, such as pharmacy or grocery.", location="City to look in."
        ),
        statuses=("looking_up_retailer",),
    ),
)

RENDERS: tuple[RenderSpec, ...] = (
    RenderSpec("render_offers", "offer"),
    RenderSpec("render_products", "product"),
    RenderSpec("render_receipts", "receipt"),
    RenderSpec("render_games", "game"),
    RenderSpec("render_restaurants", "restaurant"),
)
SUPPORT = "ask_support_service"
TOOL_IDS = (*(spec.id for spec in (*SPECS, *RENDERS)), SUPPORT)
"""What a card may name."""


def toolbox(
    enrich: Enrich, support: Support, episodes: Episodes | None = None, *, key: str | None = None
) -> Toolbox:
    """The tools over the given clients. `episodes` keeps conversation ids, a store; None: in
    memory. `key` signs envelopes."""
    if episodes is not None:
        conversations = Conversations(episodes)
    else:
        conversations = Conversations()

    def enricher(spec: EnricherSpec) -> ConfiguredTool:
        return ConfiguredTool(lambda config: enricher_tool(spec, enrich, config, key), LIMITS)

    def renderer(spec: RenderSpec) -> ConfiguredTool:
        return ConfiguredTool(lambda _: render_tool(spec))

    return {
        **{spec.id: enricher(spec) for spec in SPECS},
        **{spec.id: renderer(spec) for spec in RENDERS},
        SUPPORT: ConfiguredTool(
            lambda config: support_tool(SUPPORT, support, config, conversations), PATIENCE
        ),
    }


@tool_factory(*TOOL_IDS)
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """The tools over the embedded services, or over those that KIT_UPSTREAM_URL names."""
    from kit.worlds.consumer.services import context_service, support_service, world_at

    key = setup.environment.get(KEY)
    pace = setup.settings.pace
    settings = setup.settings

    def world() -> World:
        return world_at(settings.data, settings.today)

    async with (
        open_client(setup, "context", lambda: context_service(world(), pace, key)) as context,
        open_client(setup, "support", lambda: support_service(world(), pace)) as support,
    ):
        yield toolbox(HttpEnrich(context), HttpSupport(support), setup.store, key=key)
