"""Sizes of what agents and centralized learners read."""

from typing import NamedTuple

import jax

from icmape.ecosystem.game import Game


class GameSizes(NamedTuple):
    """Numbers in an observation (token, grid, identity, t/T), and in the state of the team."""

    observation: int
    team_state: int
    token: int
    grid: tuple[int, ...] | None  # channels, rows, columns


def game_sizes(game: Game) -> GameSizes:
    """The sizes, found without computing anything."""
    state = jax.eval_shape(lambda: game.reset(jax.random.key(0)))
    observations = jax.eval_shape(game.observations, state)
    view = jax.eval_shape(jax.vmap(game.problem.features), state.memories)
    return GameSizes(
        observation=observations.shape[1],
        team_state=jax.eval_shape(game.team_state, state).shape[0],
        token=view.token.shape[1],
        grid=None if view.grid is None else tuple(view.grid.shape[1:]),
    )
