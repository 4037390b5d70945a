"""Games and how far a user got in them."""

from typing import Any

from kit.core.context import Principal
from kit.worlds.consumer import talk
from kit.worlds.consumer.rows import Game, Progress
from kit.worlds.consumer.shopping import page
from kit.worlds.consumer.world import World, who
from kit.worlds.service.parameters import Parameters
from kit.worlds.service.search import Index

Payload = dict[str, Any]


def games(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Games that still run, the best paid first, apart from those the user already plays."""
    begun = {progress.game_id for progress in world.progress.get(who(principal), ())}
    running = sorted(
        (game for game in world.games.values() if game.ends >= world.as_of),
        key=lambda game: (-_worth(game), game.id),
    )
    result = Index(running, _words, talk=talk.GAMES).search(parameters.text)
    if result.match == "named":
        fresh = result.rows
    else:
        fresh = tuple(game for game in result.rows if game.id not in begun)
    return page(
        "games",
        [_game_payload(game, game.id in begun) for game in fresh[: parameters.limit]],
        result,
    )


def progress(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """The user's games, nearest to their next goal first."""
    own = sorted(
        world.progress.get(who(principal), ()),
        key=lambda row: _steps_to_go(world.games[row.game_id], row),
    )
    result = Index(own, lambda row: _words(world.games[row.game_id]), talk=talk.GAMES).search(
        parameters.text
    )
    rows = [
        _progress_payload(world.games[row.game_id], row) for row in result.first(parameters.limit)
    ]
    return page("games", rows, result)


def _worth(game: Game) -> int:
    return sum(goal.points for goal in game.goals)


def _steps_to_go(game: Game, row: Progress) -> int:
    return game.goals[len(row.reached)].step - row.step


def _words(game: Game) -> list[tuple[float, str]]:
    return [(3.0, game.name), (2.0, game.genre), (4.0, game.id)]


def _game_payload(game: Game, begun: bool) -> Payload:
    first = game.goals[0]
    return {
        "id": game.id,
        "name": game.name,
        "genre": game.genre,
        "steps": game.steps,
        "points": _worth(game),
        "first_goal": first.step,
        "first_points": first.points,
        "begun": begun,
        "ends": game.ends,
    }


def _progress_payload(game: Game, row: Progress) -> Payload:
    following = game.goals[len(row.reached)]
    return {
        "id": game.id,
        "name": game.name,
        "genre": game.genre,
        "steps": game.steps,
        "step": row.step,
        "earned": sum(goal.points for goal in game.goals[: len(row.reached)]),
        "next_goal": following.step,
        "next_points": following.points,
        "ends": game.ends,
    }
