"""The enrichers of the manga world."""

from kit.core.context import Principal
from kit.worlds.manga import titles
from kit.worlds.manga.library import Library
from kit.worlds.service.enrichers import Catalogue, Enricher, Enrichers

ENRICHERS: Enrichers = {
    ("manga", "catalog"): Enricher(titles.catalog, 0.18, personal=False),
    ("manga", "prefs"): Enricher(titles.prefs, 0.22),
    ("manga", "sentiment"): Enricher(titles.sentiment, 0.26, personal=False),
    ("manga", "links"): Enricher(titles.links, 0.2, personal=False),
    ("manga", "policy"): Enricher(titles.policy, 0.16, personal=False),
}


def catalogue(library: Library) -> Catalogue:
    """What the context service serves of this library. Everybody of a tenant with readers is known:
    a new reader is one too."""
    tenants = frozenset(tenant for tenant, _ in library.readers)

    def knows(principal: Principal, personal: bool) -> bool:
        return principal.tenant_id in tenants

    return Catalogue(library, ENRICHERS, knows)
