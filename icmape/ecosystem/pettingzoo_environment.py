"""A problem as a PettingZoo ParallelEnv, with one compiled call a step. Needs the extra `pettingzoo`."""

import secrets
from collections.abc import Mapping
from functools import partial
from operator import index
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from jaxtyping import Array, Float, Int, Integer, Key
from pettingzoo import ParallelEnv

from icmape.ecosystem.game import Game, GameState, Turn
from icmape.ecosystem.sizes import GameSizes, game_sizes
from icmape.errors import UserError
from icmape.play.episodes import RESERVED, STREAM, check_seed

OWN_STREAM = 0x9E77  # separates these worlds from those of evaluations with the same seed
MOST_SEED = 2**32 - 1

Situation = tuple[Key[Array, ""], GameState]
"""The key of an episode's rounds, and its state."""


class Environment(ParallelEnv[str, np.ndarray, Any]):
    """A ParallelEnv: actions 0..A-1, then STOP. Every agent's info has its `action_mask`.

    The last infos also have `answer`, `truth`, `correct`, `confidence` and `tau` (rounds, the stop round included).
    `reset(seed)` starts a sequence of worlds; `reset()` goes on with its next one. With
    `options={"evaluation": True}` the worlds are those of `icmape.evaluate` with this seed.
    """

    def __init__(self, game: Game):
        self.game = game
        problem = game.problem
        name = type(problem.unwrapped).__name__.lower()
        self.metadata = {"name": f"icmape_{name}", "render_modes": [], "is_parallelizable": True}
        self.render_mode = None
        self.possible_agents = [f"agent_{number}" for number in range(problem.agents)]
        self.agents: list[str] = []
        self.sizes: GameSizes = game_sizes(game)
        low, high = np.float32(-np.inf), np.float32(np.inf)
        box = partial(Box, low, high, dtype=np.float32)
        self.observation_spaces: dict[str, Space] = {
            agent: box((self.sizes.observation,)) for agent in self.possible_agents
        }
        self.action_spaces: dict[str, Space] = {agent: Discrete(problem.actions + 1) for agent in self.possible_agents}
        self.state_space = box((self.sizes.team_state,))
        self._seed: int | None = None
        self._episode, self._evaluation = 0, False
        self._situation: tuple = ()
        self._compile()

    def observation_space(self, agent: str) -> Space:
        """The space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space:
        """The actions of an agent; STOP is the last one."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Begin an episode in a fresh world."""
        evaluation = (options or {}).get("evaluation")
        if seed is not None or self._seed is None:
            begun = secrets.randbelow(RESERVED) if seed is None else _checked(seed)
            if evaluation:
                check_seed(begun)  # later seeds are those of certificates
            self._seed, self._episode, self._evaluation = begun, 0, bool(evaluation)
        elif evaluation is not None and bool(evaluation) != self._evaluation:
            raise UserError(
                f"without a seed, reset goes on with the worlds of the last one, which has evaluation "
                f"{self._evaluation}; given {bool(evaluation)}: give a seed with it, reset(seed=..., options=...)"
            )
        stream = STREAM if self._evaluation else OWN_STREAM
        numbers = np.array([self._seed, stream, self._episode], np.uint32)
        self._situation, observations, masks = self._start(numbers)
        self._episode += 1
        self.agents = self.possible_agents[:]
        return self._by_agent(np.array(observations)), self._infos(np.array(masks))

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, np.ndarray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Execute one action of every agent."""
        if not self.agents:
            raise UserError("the episode is over, or none has begun: call reset() first")
        joint = self._joint(actions)
        self._situation, observations, masks, numbers, answer, truth = self._advance(self._situation, joint)
        reward, stopped, truncated, correct, confidence, tau = np.asarray(numbers).tolist()
        infos = self._infos(np.array(masks))
        if stopped or truncated:
            outcome = {"correct": bool(correct), "confidence": confidence, "tau": int(tau)}
            outcome |= {"answer": np.array(answer), "truth": np.array(truth)}
            for info in infos.values():
                info.update(outcome)
            self.agents = []
        return (
            self._by_agent(np.array(observations)),
            dict.fromkeys(self.possible_agents, reward),
            dict.fromkeys(self.possible_agents, bool(stopped)),
            dict.fromkeys(self.possible_agents, bool(truncated)),
            infos,
        )

    def state(self) -> np.ndarray:
        """The team's features and the share of the horizon that has passed, for centralized training."""
        if not self._situation:
            raise UserError("no episode has begun: call reset() first")
        return np.array(self._team_state(self._situation))

    def _joint(self, actions: dict[str, Any]) -> np.ndarray:
        most = self.game.problem.actions
        try:
            joint = [index(actions[agent]) for agent in self.possible_agents]
        except KeyError as error:
            raise UserError(f"actions needs one action of every agent; {error.args[0]} is missing") from error
        except TypeError as error:
            raise UserError(f"an action must be a whole number; given {_given(actions)}") from error
        if len(actions) > len(joint):
            unknown = [name for name in actions if name not in self.possible_agents]
            raise UserError(f"unknown agents in actions: {unknown}; the agents are {self.possible_agents}")
        if min(joint) < 0 or max(joint) > most:
            raise UserError(f"an action must be 0..{most} ({most} is STOP); given {joint}")
        return np.array(joint, np.int32)

    def _by_agent(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(self.possible_agents, rows, strict=True))

    def _infos(self, masks: np.ndarray) -> dict[str, dict[str, Any]]:
        return {agent: {"action_mask": mask} for agent, mask in zip(self.possible_agents, masks, strict=True)}

    def _compile(self) -> None:
        """Equal games share their compiled programs: the game's arrays are arguments, the rest is static."""
        leaves, structure = jax.tree.flatten(self.game)
        arrays = tuple(leaf for leaf in leaves if isinstance(leaf, jax.Array | np.ndarray))
        rules = Rules(structure, tuple(None if isinstance(x, jax.Array | np.ndarray) else Fixed(x) for x in leaves))
        self._start = partial(_start, rules, arrays)
        self._advance = partial(_advance, rules, arrays)
        self._team_state = partial(_team_state, rules, arrays)

    def __getstate__(self) -> dict[str, Any]:
        """All but the programs, which copies and other processes compile, or share with an equal game.

        The situation is NumPy, so that another process needs no device of this one.
        """
        programs = ("_start", "_advance", "_team_state")
        kept = {name: value for name, value in vars(self).items() if name not in programs}
        return kept | {"_situation": tuple(map(np.asarray, self._situation)), "agents": self.agents[:]}

    def __setstate__(self, content: dict[str, Any]) -> None:
        self.__dict__.update(content)
        self._compile()


def _checked(seed: int) -> int:
    if not 0 <= int(seed) <= MOST_SEED:
        raise UserError(f"seed must lie in 0..{MOST_SEED}; given {seed}")
    return int(seed)


def _given(actions: Mapping[str, Any]) -> str:
    """Actions in few words."""
    return ", ".join(f"{name}: {action!r:.30}" for name, action in list(actions.items())[:8])


class Fixed:
    """A leaf of a game that is no array, such as an activation function."""

    def __init__(self, leaf: Any):
        self.leaf = leaf

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and bool(self.leaf == other.leaf)

    def __hash__(self) -> int:
        return hash(self.leaf)


class Rules:
    """A game without its arrays, as a static argument."""

    def __init__(self, structure: Any, fixed: tuple[Fixed | None, ...]):
        self.structure, self.fixed = structure, fixed
        self._hash = hash((structure, fixed))

    def game(self, arrays: tuple) -> Game:
        """The game with these arrays."""
        rest = iter(arrays)
        leaves = [next(rest) if fixed is None else fixed.leaf for fixed in self.fixed]
        game: Game = jax.tree.unflatten(self.structure, leaves)
        return game

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Rules) and self.structure == other.structure and self.fixed == other.fixed

    def __hash__(self) -> int:
        return self._hash


def _begin(game: Game, numbers: Integer[Array, "3"]) -> Situation:
    """The same keys as an episode of an evaluation has (`play.episodes.world_keys`, `play.rollout`)."""
    seed, stream, episode = numbers
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), stream), episode)
    return jax.random.split(key, 3)[2], game.reset(key)


def _after(game: Game, situation: Situation, actions: Int[Array, "agents"]) -> tuple[Situation, Turn]:
    for_rounds, state = situation
    for_step = jax.random.split(jax.random.fold_in(for_rounds, state.number), 3)[2]
    turn = game.step(for_step, state, actions)
    return (for_rounds, turn.state), turn


def _packed(situation: Situation) -> tuple[Array, ...]:
    """A situation as a flat tuple, which compiled calls take and return fastest."""
    key, state = situation
    return jax.random.key_data(key), *jax.tree.leaves(state)


def _unpacked(game: Game, packed: tuple[Array, ...]) -> Situation:
    layout = jax.eval_shape(lambda: _begin(game, jnp.zeros(3, jnp.uint32))[1])
    return jax.random.wrap_key_data(packed[0]), jax.tree.unflatten(jax.tree.structure(layout), packed[1:])


@partial(jax.jit, static_argnums=0)
def _start(
    rules: Rules, arrays: tuple, numbers: Integer[Array, "3"]
) -> tuple[tuple, Float[Array, "agents features"], Int[Array, "agents choices"]]:
    game = rules.game(arrays)
    situation = _begin(game, numbers)
    return _packed(situation), game.observations(situation[1]), game.mask(situation[1]).astype(jnp.int8)


@partial(jax.jit, static_argnums=0)
def _advance(rules: Rules, arrays: tuple, packed: tuple, actions: Int[Array, "agents"]) -> tuple:
    game = rules.game(arrays)
    situation, turn = _after(game, _unpacked(game, packed), actions)
    state = turn.state
    answer = game.answer(state)
    numbers = (turn.reward, turn.stopped, turn.truncated, answer.correct, answer.confidence, state.number + 1)
    packed_numbers = jnp.stack([jnp.asarray(number, jnp.float32) for number in numbers])
    masks = game.mask(state).astype(jnp.int8)
    return _packed(situation), game.observations(state), masks, packed_numbers, answer.answer, answer.truth


@partial(jax.jit, static_argnums=0)
def _team_state(rules: Rules, arrays: tuple, packed: tuple) -> Float[Array, "features"]:
    game = rules.game(arrays)
    return game.team_state(_unpacked(game, packed)[1])
