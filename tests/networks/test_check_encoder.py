"""Encoders that break their contract are refused, each with its fault, before anything is trained."""

import jax.numpy as jnp
import pytest

import icmape
from icmape import UserError
from icmape.networks import ENCODERS, check_encoder
from icmape.zoo.bandit.bandit import Bandit
from tests.networks.own_encoder import MeanEncoder, not_an_encoder

OWN = "tests.networks.own_encoder:MeanEncoder"


class Silent(MeanEncoder):
    """Steps say nothing, so the team that acts is not the one that learnt."""

    def step_token(self, state, token):
        return state, jnp.zeros(self.width)


class Late(MeanEncoder):
    """Only its later steps are wrong."""

    def step_token(self, state, token):
        state, summary = super().step_token(state, token)
        return state, jnp.where(state[1] > 9, 2 * summary, summary)


class Foresees(MeanEncoder):
    """Its one pass looks at all tokens."""

    def unroll_tokens(self, tokens):
        return super().unroll_tokens(tokens) + tokens.sum()


class Remembers(MeanEncoder):
    """Its start is another one every time."""

    def start(self):
        STARTS.append(1)
        return jnp.full(self.width, float(len(STARTS))), jnp.zeros(())


class Narrow(MeanEncoder):
    def unroll_tokens(self, tokens):
        return super().unroll_tokens(tokens)[:, 1:]


class Repeats(MeanEncoder):
    def summary(self, state):
        return state[0]


class Fails(MeanEncoder):
    def unroll_tokens(self, tokens):
        raise KeyError("no such thing")


STARTS: list[int] = []


@pytest.mark.parametrize("kind", ["paper+last", "transformer", MeanEncoder, OWN])
def test_encoders_that_keep_their_promises_pass(kind, monkeypatch):
    monkeypatch.setattr("icmape.networks.encoders.ENCODERS", dict(ENCODERS))
    check_encoder(kind, features=3, width=8, rounds=9)


@pytest.mark.parametrize(
    ("encoder", "named"),
    [
        (Silent, r"step_token and unroll_tokens differ: by .* in round 0"),
        (Late, r"step_token and unroll_tokens differ: by .* in round 9"),
        (Foresees, "tokens of later rounds change earlier summaries of unroll_tokens"),
        (Remembers, r"start\(\) depends on what was read before"),
        (Narrow, r"unroll_tokens gives summaries of shape \(12, 7\); with its size of 8 that must be \(12, 8\)"),
        (Repeats, r"summary\(state\) is not that of the last step"),
        (Fails, "the encoder Fails fails for 3 features, width 8 and 12 rounds: KeyError: 'no such thing'"),
        (not_an_encoder, "it makes int, which is no icmape.networks.TokenEncoder"),
    ],
)
def test_a_broken_promise_is_named(encoder, named):
    with pytest.raises(UserError, match=named):
        check_encoder(encoder, features=3, width=8, rounds=12)


def test_a_team_is_not_trained_with_an_encoder_that_breaks_its_contract(monkeypatch):
    """It is built as the training builds it: for the problem's features, the width and the horizon."""
    monkeypatch.setitem(ENCODERS, "tests.networks.test_check_encoder:Silent", Silent)
    problem = Bandit(arms=2, players=2, horizon=6)
    settings = {"network": {"hidden_size": 8, "encoder": "tests.networks.test_check_encoder:Silent"}}
    with pytest.raises(UserError, match=r"test_check_encoder:Silent breaks its contract:\n  - step_token and"):
        icmape.train(problem, algorithm="ppo", progress=False, **settings)
