"""Learning a team: rollout, replay, returns, dual variable, algorithms, and the run around them.

Needs jax, equinox, optax and numpy only.
"""
