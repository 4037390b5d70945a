"""Every tool of the consumer deck, as data, and the factories that make them."""

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool

from kit.tools.enricher import Enrich, EnricherSpec, enricher_tool
from kit.tools.feedback import Thumbs, feedback_tool
from kit.tools.render import RENDERS, RenderSpec, render_tool
from kit.tools.tool import ToolFactory
from kit.worlds.consumer.support import Conversations, Episodes, Support, support_tool
from kit.worlds.consumer.wording import WORDINGS as CONSUMER
from kit.worlds.manga.wording import WORDINGS as MANGA

WORDINGS = {**CONSUMER, **MANGA}
Properties = Mapping[str, Mapping[str, Any]]


def _words(description: str, **more: str) -> Properties:
    """The arguments of a search: free words, more named words, and how many rows."""
    named = {name: {"type": "string", "description": text} for name, text in more.items()}
    return {
        "query": {"type": "string", "description": description},
        **named,
        "limit": {"type": "integer", "description": "How many to return, 1 to 20."},
    }


_STATUS = {"type": "string", "enum": ["accepted", "pending", "rejected"], "description": "Only receipts in this state."}

SPECS: tuple[EnricherSpec, ...] = (
    EnricherSpec(
        id="search_offers",
        description="Find current offers and deals that pay points on products, by category, brand, product or store.",
        domain_type="shop",
        enricher_id="offers",
        wording=WORDINGS["shop", "offers"],
        properties=_words("What to find offers for, such as coffee or a brand name.", brand="Brand name.", category="Category."),
        statuses=("searching_offers",),
    ),
    EnricherSpec(
        id="search_products",
        description="Find products and their prices in the catalogue, by category, brand or name.",
        domain_type="shop",
        enricher_id="products",
        wording=WORDINGS["shop", "products"],
        properties=_words("What product to look for.", brand="Brand name.", category="Category."),
        statuses=("searching_catalog",),
    ),
    EnricherSpec(
        id="get_purchase_history",
        description="What the user bought before, with store, date and price, from the user's receipts.",
        domain_type="shop",
        enricher_id="purchases",
        wording=WORDINGS["shop", "purchases"],
        properties=_words("A product, brand, category or store to narrow it to."),
        statuses=("looking_up_purchase_history",),
    ),
    EnricherSpec(
        id="search_help_articles",
        description="Find help articles that explain how the app works and what to do about a problem.",
        domain_type="support",
        enricher_id="articles",
        wording=WORDINGS["support", "articles"],
        properties=_words("The question or problem in the user's words.", category="Support topic."),
        statuses=("reading_help_articles",),
    ),
    EnricherSpec(
        id="get_user_points",
        description="How many points the user has: the balance now, the points pending, and what was earned and spent lately.",
        domain_type="rewards",
        enricher_id="balance",
        wording=WORDINGS["rewards", "balance"],
        statuses=("looking_up_points_balance",),
    ),
    EnricherSpec(
        id="get_redemption_history",
        description="Past redemptions: which rewards the user redeemed or cashed in before, when, and if they were delivered.",
        domain_type="rewards",
        enricher_id="redemptions",
        wording=WORDINGS["rewards", "redemptions"],
        properties=_words("A reward to narrow it to."),
        statuses=("looking_up_points_balance",),
    ),
    EnricherSpec(
        id="calculate_redemption",
        description="What the user's points are worth: whether a reward or gift card is affordable, and how many are missing.",
        domain_type="rewards",
        enricher_id="quote",
        wording=WORDINGS["rewards", "quote"],
        properties=_words("The reward the user has in mind, such as a gift card."),
        statuses=("calculating_redemption",),
    ),
    EnricherSpec(
        id="get_points_by_method",
        description="How the user's points were earned: from receipts, games, referrals and bonuses, and how many were spent.",
        domain_type="rewards",
        enricher_id="by_method",
        wording=WORDINGS["rewards", "by_method"],
        statuses=("looking_up_points_balance",),
    ),
    EnricherSpec(
        id="list_receipts",
        description="The user's receipts, newest first, with store, date, total, points and state (accepted, pending, rejected).",
        domain_type="ereceipts",
        enricher_id="receipts",
        wording=WORDINGS["ereceipts", "receipts"],
        properties={**_words("A store, product or receipt number to narrow it to."), "status": _STATUS},
        statuses=("matching_receipt",),
    ),
    EnricherSpec(
        id="match_receipt",
        description="Match one receipt with offers: which it met, which it missed and why; why it was rejected or is pending.",
        domain_type="ereceipts",
        enricher_id="match",
        wording=WORDINGS["ereceipts", "match"],
        properties={**_words("The store, product or receipt number it is about."), "status": _STATUS},
        statuses=("matching_receipt",),
    ),
    EnricherSpec(
        id="get_receipt",
        description="One receipt in full: every line with quantity and price, its total, state and points.",
        domain_type="ereceipts",
        enricher_id="receipt",
        wording=WORDINGS["ereceipts", "receipt"],
        properties=_words("The receipt number, or the store or product it is about."),
        statuses=("matching_receipt",),
    ),
    EnricherSpec(
        id="list_games",
        description="Games that pay points, what they pay and until when.",
        domain_type="play",
        enricher_id="games",
        wording=WORDINGS["play", "games"],
        properties=_words("A game or a kind of game, such as puzzle or cards."),
        statuses=("looking_up_games",),
    ),
    EnricherSpec(
        id="get_game_progress",
        description="How far the user is in the games being played, points earned in them and the next goal.",
        domain_type="play",
        enricher_id="progress",
        wording=WORDINGS["play", "progress"],
        properties=_words("A game to narrow it to."),
        statuses=("looking_up_games",),
    ),
    EnricherSpec(
        id="get_offer_terms",
        description="The terms of an offer: how many to buy, where, until when, and the limit per account.",
        domain_type="offer_details",
        enricher_id="terms",
        wording=WORDINGS["offer_details", "terms"],
        properties=_words("The offer, product or brand whose terms are wanted."),
        statuses=("looking_up_offer_terms",),
    ),
    EnricherSpec(
        id="list_expiring_offers",
        description="Offers that end soon, the first to end first.",
        domain_type="offer_details",
        enricher_id="expiring",
        wording=WORDINGS["offer_details", "expiring"],
        properties={
            **_words("A category, brand or store to narrow it to."),
            "within_days": {"type": "integer", "description": "How many days ahead to look, 1 to 20."},
        },
        statuses=("looking_up_offer_terms",),
    ),
    EnricherSpec(
        id="find_restaurants",
        description="Find restaurants nearby, by cuisine or name, with price, rating and distance.",
        domain_type="restaurants",
        enricher_id="restaurants",
        wording=WORDINGS["restaurants", "restaurants"],
        properties=_words("A cuisine or restaurant, such as pizza or thai.", location="City to look in."),
        statuses=("finding_restaurants",),
    ),
    EnricherSpec(
        id="get_restaurant_offers",
        description="Offers that pay points for eating out, by cuisine or restaurant.",
        domain_type="restaurants",
        enricher_id="offers",
        wording=WORDINGS["restaurants", "offers"],
        properties=_words("A cuisine or restaurant."),
        statuses=("finding_restaurants",),
    ),
    EnricherSpec(
        id="get_retailer",
        description="Facts about one retailer: its kind, number of stores, nearest store, opening hours, eReceipts and offers.",
        domain_type="retailer_context",
        enricher_id="retailer",
        wording=WORDINGS["retailer_context", "retailer"],
        properties=_words("The name of the retailer.", location="City to look in."),
        statuses=("looking_up_retailer",),
    ),
    EnricherSpec(
        id="list_retailers_near",
        description="Stores near the user, the nearest first, by kind of store or retailer name.",
        domain_type="retailer_context",
        enricher_id="stores",
        wording=WORDINGS["retailer_context", "stores"],
        properties=_words("A retailer or kind of store, such as pharmacy or grocery.", location="City to look in."),
        statuses=("looking_up_retailer",),
    ),
)

_TITLES = "Title ids, titles or words, such as mg-0012 or dark fantasy."
SKILLS: tuple[EnricherSpec, ...] = (
    EnricherSpec(
        id="catalog-search",
        description="Find titles of the library by genre, theme, story, studio or name.",
        domain_type="manga",
        enricher_id="catalog",
        wording=WORDINGS["manga", "catalog"],
        properties=_words("What to look for, such as dark fantasy or a title."),
        statuses=("searching_catalog",),
    ),
    EnricherSpec(
        id="user-prefs-reco",
        description="What the reader likes and has read, and unread titles that fit.",
        domain_type="manga",
        enricher_id="prefs",
        wording=WORDINGS["manga", "prefs"],
        properties=_words("A genre or theme to narrow it to."),
        statuses=("looking_up_tastes",),
    ),
    EnricherSpec(
        id="review-sentiment",
        description="What reviewers make of titles: score, praise and complaint, to compare them by.",
        domain_type="manga",
        enricher_id="sentiment",
        wording=WORDINGS["manga", "sentiment"],
        properties=_words(_TITLES),
        statuses=("reading_reviews",),
    ),
    EnricherSpec(
        id="cross-title-link",
        description="How titles hang together: same studio, shared world, what is read after what.",
        domain_type="manga",
        enricher_id="links",
        wording=WORDINGS["manga", "links"],
        properties=_words(_TITLES),
        statuses=("searching_catalog",),
    ),
    EnricherSpec(
        id="support-policy",
        description="The spoiler rules, and what may be told of each story arc of a title.",
        domain_type="manga",
        enricher_id="policy",
        wording=WORDINGS["manga", "policy"],
        properties=_words(_TITLES),
        statuses=("checking_spoiler_rules",),
    ),
)
"""Of the manga deck (SO-14)."""

SUPPORT, FEEDBACK = "ask_support_service", "llm_feedback"
TOOL_IDS: frozenset[str] = frozenset(spec.id for spec in (*SPECS, *SKILLS, *RENDERS)) | {SUPPORT, FEEDBACK}
"""What a card may name."""


def toolbox(
    enrich: Enrich,
    support: Support,
    feedback: Thumbs | None = None,
    episodes: Episodes | None = None,
    *,
    key: str | None = None,
) -> dict[str, ToolFactory]:
    """Tool id -> factory over the given clients; `feedback` and `episodes` are a store, or None when none is kept.

    `key` signs envelopes.
    """
    conversations = Conversations(episodes) if episodes is not None else Conversations()

    def of(spec: EnricherSpec) -> ToolFactory:
        return lambda config: enricher_tool(spec, enrich, config, key)

    def of_support(config: Mapping[str, Any]) -> BaseTool:
        return support_tool(SUPPORT, support, config, conversations)

    def of_feedback(_: Mapping[str, Any]) -> BaseTool:
        return feedback_tool(FEEDBACK, feedback)

    def of_render(spec: RenderSpec) -> ToolFactory:
        return lambda _: render_tool(spec)

    return {
        **{spec.id: of(spec) for spec in (*SPECS, *SKILLS)},
        **{spec.id: of_render(spec) for spec in RENDERS},
        SUPPORT: of_support,
        FEEDBACK: of_feedback,
    }
