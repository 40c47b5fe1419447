"""The causal transformer against NumPy, and its two ways to read a history; encoders of one's own."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import icmape
import icmape_agent
from icmape import UserError, cli
from icmape.networks import ENCODERS, TransformerEncoder, encoder_named
from icmape.problem import Features
from icmape.zoo.bandit.bandit import Bandit
from tests.support import drawn, step, unroll

FEATURES, WIDTH, ROUNDS, MOST = 3, 8, 7, 9
OWN = "tests.networks.own_encoder:MeanEncoder"
SHORT = {
    "iterations": 2,
    "num_envs": 8,
    "greedy_fraction": 0.5,
    "gradient_steps": 2,
    "network": {"hidden_size": 8},
    "plan": {"iterations": 0},
    "validation_interval": 1,
    "validation_episodes": 16,
    "settling_episodes": 64,
}


@pytest.fixture(scope="module")
def encoder() -> TransformerEncoder:
    return drawn(lambda: TransformerEncoder(FEATURES, WIDTH, "transformer", MOST, key=jax.random.key(2)))


@pytest.fixture(scope="module")
def tokens() -> jnp.ndarray:
    return jnp.asarray(np.random.default_rng(3).standard_normal((ROUNDS, FEATURES)), jnp.float32)


def numpy_summary(encoder: TransformerEncoder, tokens: np.ndarray) -> np.ndarray:
    """The summary of a whole history, head by head, without a mask: it is the last row."""
    p = jax.tree.map(lambda x: np.asarray(x, np.float64), encoder)

    def norm(layer, x):
        centred = x - x.mean()
        return centred / np.sqrt((centred**2).mean() + layer.eps) * layer.weight + layer.bias

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    rows = [
        p.embedding.weight @ token + p.embedding.bias + place for token, place in zip(tokens, p.positions, strict=False)
    ]
    for block in p.blocks:
        after = []
        for t, x in enumerate(rows):
            past = [norm(block.norm_in, row) for row in rows[: t + 1]]
            mixed = []
            for head in range(4):
                part = slice(2 * head, 2 * head + 2)
                query = (block.query.weight @ past[-1])[part]
                scores = np.array([query @ (block.key.weight @ row)[part] for row in past]) / math.sqrt(2)
                weights = np.exp(scores - scores.max())
                mixed.append(sum(w * (block.value.weight @ row)[part] for w, row in zip(weights, past, strict=True)))
                mixed[-1] = mixed[-1] / weights.sum()
            x = x + block.mixed.weight @ np.concatenate(mixed)
            hidden = gelu(block.hidden.weight @ norm(block.norm_out, x) + block.hidden.bias)
            after.append(x + block.output.weight @ hidden + block.output.bias)
        rows = after
    return norm(p.norm, rows[-1])


def test_a_summary_is_what_numpy_finds(encoder, tokens):
    found = unroll(encoder, Features(tokens))
    for count in (1, 4, ROUNDS):
        expected = numpy_summary(encoder, np.asarray(tokens[:count], np.float64))
        np.testing.assert_allclose(found[count - 1], expected, atol=5e-5)


def test_step_is_unroll_at_every_prefix(encoder, tokens):
    state, found = encoder.start(), []
    for token in tokens:
        state, summary = step(encoder, state, Features(token))
        found.append(summary)
    np.testing.assert_allclose(jnp.stack(found), unroll(encoder, Features(tokens)), atol=2e-5)


def test_what_comes_later_does_not_change_earlier_summaries(encoder, tokens):
    padded = unroll(encoder, Features(tokens.at[4:].set(50.0)))
    np.testing.assert_allclose(padded[:4], unroll(encoder, Features(tokens))[:4], atol=1e-5)
    assert not np.allclose(padded[4:], unroll(encoder, Features(tokens))[4:], atol=1e-2)


def test_rounds_without_anything_new_are_skipped(encoder, tokens):
    fresh = jnp.array([True, False, True, True, False, False, True])
    views = Features(tokens, None, fresh)
    skipping = np.asarray(unroll(encoder, views))
    fresh_only = np.asarray(unroll(encoder, Features(tokens[np.flatnonzero(fresh)])))
    np.testing.assert_allclose(skipping, fresh_only[np.cumsum(fresh) - 1], atol=1e-5)
    state = encoder.start()
    for number in range(ROUNDS):
        state, summary = step(encoder, state, jax.tree.map(lambda x, n=number: x[n], views))
        np.testing.assert_allclose(summary, skipping[number], atol=2e-5)


@pytest.mark.parametrize("kind", ["transformer", OWN])
def test_a_team_with_it_trains_is_saved_and_acts_without_jax(kind, tmp_path, monkeypatch):
    if kind == OWN:
        monkeypatch.setitem(ENCODERS, OWN, __import__("tests.networks.own_encoder", fromlist=["x"]).MeanEncoder)
    settings = {**SHORT, "network": {"hidden_size": 8, "encoder": kind}}
    problem = Bandit(arms=2, players=2, horizon=6)
    team = icmape.train(problem, algorithm="iql", progress=False, batch_size=8, **settings)
    path = tmp_path / "team.safetensors"
    team.save(path)
    again = icmape.load(path)
    assert again.evaluate(episodes=50).to_dict() == team.evaluate(episodes=50).to_dict()
    light, full = icmape_agent.load(path).agent(0), again.agent(0)
    for reading in (0, 1, 1):
        action = full.act()
        assert light.act() == action
        if action is icmape.STOP:
            break
        light.see(action, reading)
        full.see(action, reading)


def test_code_that_only_a_file_names_is_not_imported(capsys, tmp_path):
    with pytest.raises(UserError, match=r"is not part of icmape: to run this code, add --network\.encoder"):
        encoder_named("tests.nowhere:Encoder")
    with pytest.raises(UserError, match=r"unknown network\.encoder 'papper': did you mean paper"):
        encoder_named("papper")
    assert (
        cli.main(["train", "bandit-quick", "--network.encoder", "tests.nowhere:Encoder", "--out", str(tmp_path)]) == 2
    )
    assert "cannot import tests.nowhere" in capsys.readouterr().err


def test_the_flag_names_an_encoder_for_any_command(monkeypatch):
    monkeypatch.delitem(ENCODERS, OWN, raising=False)
    words = ["evaluate", "team", "--network.encoder", OWN, "--episodes", "3"]
    assert cli.with_encoders(words) == ["evaluate", "team", "--episodes", "3"]
    assert cli.with_encoders(["evaluate", "--network.encoder", OWN, OWN, "team"]) == ["evaluate", "team"]
    assert json.dumps(sorted(ENCODERS)) == json.dumps(sorted(["paper", "paper+last", "transformer", OWN]))
    assert cli.with_encoders(["train", f"--network.encoder={OWN}"]) == ["train", f"--network.encoder={OWN}"]
    monkeypatch.delitem(ENCODERS, OWN)
