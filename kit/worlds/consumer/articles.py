"""Help articles by simple word overlap."""

from typing import Any

from kit.core.context import Principal
from kit.worlds.consumer.shopping import page
from kit.worlds.consumer.world import World
from kit.worlds.service.parameters import Parameters

Payload = dict[str, Any]


def articles(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """The articles that share the most, and the rarest, words with the question."""
    result = world.article_index.search(parameters.text, as_list=False)
    rows = [
        article.model_dump(include={"id", "topic", "title", "text"})
        for article in result.first(parameters.limit)
    ]
    return page("articles", rows, result)
