"""Training of teams: replay, returns, dual variable, algorithms, and training runs.

Needs jax, equinox, optax and numpy only.
"""
