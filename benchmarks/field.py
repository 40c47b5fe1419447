"""Six agents and a coordinator in seven processes over mosquitto: python -m benchmarks.field --out results/field.json.

The team is the shipped nitrate-synthetic, in the worlds that it was trained for, or another one for hotspots (--team).

Every agent is a process of its own, without JAX, with its own journal, and so is the coordinator. A proxy between them
and the broker doubles, delays and drops messages and cuts connections. Agents and the coordinator are killed (SIGKILL)
at random moments and started again; the broker is not. A reading that falls while an agent is down is missed; some
readings never come; a stop bit may come late. At the end every reading and every miss that was acknowledged is looked
for in the coordinator's journal.

The worlds are the problem's. Accuracy and τ are compared with what `icmape.Unreliable` predicts in the same worlds,
with new readings. Its rate of lost readings is the one that was counted. Late bits come in groups, as one delay on the
way up makes all others late, and `Unreliable` makes each agent late on its own: its rate is the one at which equally
many episodes have a late agent. As in `Unreliable`, the readings of agents that heard the bit late count, and τ is
larger by 1 if anybody was late. A session counts neither, so its own answer and stop are compared with `Unreliable`
without late bits. --again only predicts, for what the file of --out holds.
"""

import argparse
import json
import math
import queue
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import icmape_agent
from benchmarks.field_predictions import WORLDS, against_predictions, late_rate, rows
from benchmarks.field_process import Process
from benchmarks.field_proxy import Faults, Proxy
from benchmarks.mosquitto import Mosquitto
from icmape.errors import UserError
from icmape.evaluation.intervals import mean_interval, wilson_interval
from icmape.io import circumstances, write_atomically
from icmape.play.team import Team
from icmape.play.team_files import about, load
from icmape_agent.files import find
from icmape_agent.session import Session, journal

LIMIT = 90.0  # seconds after which an episode counts as one without an end
CONTENT = ("type", "agent", "round", "action", "reading")
Entries = dict[tuple[str, int, int], dict[str, Any]]
"""Readings and misses by type, agent and round."""


@dataclass(frozen=True)
class Plan:
    """What is played."""

    episodes: int = 200
    seed: int = 0
    every: float = 0.8  # seconds of a round
    listen: float = 0.3  # of these, between a decision and its action
    lost: float = 0.03  # probability that a sensor gives no reading
    killed: float = 0.15  # probability that an agent is killed in an episode, and that the coordinator is
    span: int = 2  # rounds within which a kill falls
    faults: Faults = field(default_factory=Faults)


@dataclass
class Counts:
    """What was counted."""

    episodes: int = 0
    without_end: int = 0
    kills: int = 0  # of agents
    coordinator_kills: int = 0
    acknowledged: int = 0  # readings and misses
    acknowledged_lost: int = 0  # of these, not in the coordinator's journal as they were told
    recorded: int = 0  # readings and misses in the coordinator's journal
    unknown: int = 0  # of these, not in the journal of the agent, which writes first
    refused: int = 0  # messages that the coordinator did not take
    unacknowledged: int = 0  # entries for which a device had no reply in the end
    rounds: int = 0  # of agents, before the stop
    missed: int = 0  # of these, without a reading
    others: int = 0  # agents that heard a stop bit, by episodes
    late: int = 0  # of these, those that acted in the stop round
    later: int = 0  # of these, those that acted in a later round too

    @property
    def faults(self) -> int:
        """What must not happen."""
        return self.acknowledged_lost + self.unknown + self.without_end + self.refused + self.unacknowledged

    def compare(self, kept: Entries, own: Entries, told: dict[str, Any]) -> None:
        """Add the readings and misses of one agent, in the coordinator's journal and in its own.

        `told`: the ids of those that nobody acknowledged ("waiting") and of those that were refused.
        """
        pending = {*told["waiting"], *told["refused"]}
        settled = {key: entry for key, entry in own.items() if f"{key[0]}-{key[2]}" not in pending}
        self.unacknowledged += len(told["waiting"])
        self.refused += len(told["refused"])
        self.acknowledged += len(settled)
        self.acknowledged_lost += sum(kept.get(key) != entry for key, entry in settled.items())
        self.recorded += len(kept)
        self.unknown += sum(own.get(key) != entry for key, entry in kept.items())


@dataclass
class Outcome:
    """One episode."""

    right: bool
    tau: int
    session_right: bool
    session_tau: int
    others: int  # agents that did not stop the team themselves


@dataclass
class Field:
    """Plays episodes and counts."""

    team: Team
    light: icmape_agent.Team
    plan: Plan
    folder: Path
    counts: Counts = field(default_factory=Counts)
    outcomes: list[Outcome] = field(default_factory=list)

    def play(self, number: int, central: Process, agents: Sequence[Process]) -> None:
        """One episode in a fresh world."""
        name, folder = f"field-{number}", self.folder / str(number)
        folder.mkdir()
        world, readings = world_of(self.team, self.plan.seed, number)
        np.save(folder / "readings.npy", readings)
        central.play({"name": name, "session": str(folder / "session")})
        start = time.time() + 0.4
        about = {"name": name, "readings": str(folder / "readings.npy"), "lost": self.plan.lost, "start": start}
        about |= {"every": self.plan.every, "listen": self.plan.listen, "seed": [self.plan.seed, number]}
        for index, process in enumerate(agents):
            process.play({**about, "folder": str(folder / f"agent-{index}")})
        self._kill(name, start, central, agents)
        ended = self._ends(name, agents)
        central.finish()
        self.counts.episodes += 1
        if ended is None or self._ends(name, [central]) is None:
            self.counts.without_end += 1
            return
        with self.light.session(folder / "session", write=False) as session:
            others = self._count(session, folder, ended)
            self.outcomes.append(self._judged(session, world, others))

    def _kill(self, name: str, start: float, central: Process, agents: Sequence[Process]) -> None:
        """Kill some agents, or the coordinator, at random moments."""
        chance = random.Random(f"{self.plan.seed}-{name}")
        moments = [
            (start + chance.uniform(-0.2, self.plan.span * self.plan.every), process)
            for process in (*agents, central)
            if chance.random() < self.plan.killed
        ]
        for moment, process in sorted(moments, key=lambda pair: pair[0]):
            time.sleep(max(moment - time.time(), 0))
            killed = process.kill(name)
            if process is central:
                self.counts.coordinator_kills += killed
            else:
                self.counts.kills += killed

    def _ends(self, name: str, processes: Sequence[Process]) -> list[dict[str, Any]] | None:
        """What every process told at its end; None if one of them did not end in time."""
        until = time.monotonic() + LIMIT
        try:
            return [process.ended(name, until) for process in processes]
        except queue.Empty:
            return None

    def _count(self, session: Session, folder: Path, ended: list[dict[str, Any]]) -> int:
        """Compare the journals, and count misses and late stop bits; how many agents did not stop the team."""
        counts, records = self.counts, session.records
        kept = entries(folder / "session")
        for index, told in enumerate(ended):
            own = {key: entry for key, entry in entries(folder / f"agent-{index}").items() if key[1] == index}
            counts.compare({key: entry for key, entry in kept.items() if key[1] == index}, own, told)
        stop = records.stop_round
        for agent in records.agents:
            counts.rounds += stop
            counts.missed += sum(number not in agent.readings for number in range(stop))
        others = [agent for agent in records.agents if not decided(agent, stop)]
        for agent in others:
            acted = [number for number in range(stop, session.crew.gate.sizes.horizon) if acts(agent, number)]
            counts.others += 1
            counts.late += bool(acted)
            counts.later += any(number > stop for number in acted)
        return len(others)

    def _judged(self, session: Session, world: Any, others: int) -> Outcome:
        """Whether the answer is right: with the readings of late agents as `Unreliable` counts them, and without."""
        records, stop = session.records, session.records.stop_round
        late = any(acts(agent, stop) for agent in records.agents if not decided(agent, stop))
        rows, seen = [], []
        for number in range(stop + late):
            cells = [agent.readings.get(number) or agent.misses.get(number) or {} for agent in records.agents]
            rows.append([cell.get("action") for cell in cells])
            seen.append([cell.get("reading") for cell in cells])
        answer, own = self.light.posterior(rows, seen), session.answer()
        right = [bool(self.team.problem.hypotheses.correct(jnp.asarray(a.decision), world)) for a in (answer, own)]
        return Outcome(right[0], stop + 1 + late, right[1], stop + 1, others)


def acts(agent: Any, number: int) -> bool:
    """Whether an agent did something in a round."""
    entry = agent.readings.get(number) or agent.misses.get(number) or {}
    return "action" in entry


def decided(agent: Any, stop: int) -> bool:
    """Whether an agent stopped the team in this round."""
    return agent.stop is not None and agent.stop["round"] == stop


def entries(folder: Path) -> Entries:
    """What agents did and saw, from a journal, without times."""
    lines = [line.entry for line in journal.read(folder / journal.NAME).lines]
    return {
        (e["type"], e["agent"], e["round"]): {name: e.get(name) for name in CONTENT}
        for e in lines
        if e["type"] in ("tell", "missed")
    }


def check_alone(team: Team, draws: int = 20) -> None:
    """Refuse a problem in which the reading of an agent depends on what others do."""
    problem, rng = team.problem, np.random.default_rng(0)
    for number in range(draws):
        for_world, for_start, once = jax.random.split(jax.random.key(number), 3)
        world = problem.sample(key=for_world)
        state, _ = problem.start(world, key=for_start)
        actions = rng.integers(0, problem.actions, problem.agents)
        together, alone = (
            np.asarray(problem.step(world, state, jnp.asarray(taken, jnp.int32), key=once)[1])
            for taken in (actions, np.full(problem.agents, actions[0]))
        )
        if not np.array_equal(together[0], alone[0]):
            raise UserError("readings of this problem depend on what others do: choose a team for hotspots")


def world_of(team: Team, seed: int, number: int) -> tuple[Any, np.ndarray]:
    """The truth of a world, and the readings of all agents in every round for every action."""
    truth, readings = _drawn(team, jax.random.fold_in(jax.random.key(seed + WORLDS), number))
    return truth, np.asarray(readings)


@jax.jit
def _drawn(team: Team, key: Any) -> tuple[Any, Any]:
    problem = team.problem
    for_world, for_start, for_rounds = jax.random.split(key, 3)
    world = problem.sample(key=for_world)
    state, _ = problem.start(world, key=for_start)
    if jax.tree.leaves(state) or problem.shows_first:
        raise UserError("readings of this problem depend on earlier actions: choose a team for hotspots")

    def reading(number: Any, action: Any) -> Any:
        once = jax.random.fold_in(jax.random.fold_in(for_rounds, number), action)
        return problem.step(world, state, jnp.full(problem.agents, action), key=once)[1]

    rounds, actions = jnp.arange(problem.horizon - 1), jnp.arange(problem.actions)
    return world.hypothesis, jax.vmap(lambda t: jax.vmap(lambda a: reading(t, a))(actions))(rounds)


def measure(team: Team, path: Path, plan: Plan, folder: Path) -> dict[str, Any]:
    """Play all episodes and compare."""
    broker = Mosquitto(folder / "broker")
    proxy = Proxy(broker.port, plan.faults, plan.seed).start()
    played, processes = Field(team, icmape_agent.load(path), plan, folder), []
    began = time.monotonic()
    try:
        processes = [Process("benchmarks.field_coordinator", path, proxy.at)]
        agents = range(team.problem.agents)
        processes += [Process("benchmarks.field_agent", path, index, proxy.at) for index in agents]
        for process in processes:
            process.wait()
        for number in range(plan.episodes):
            played.play(number, processes[0], processes[1:])
            if (number + 1) % 10 == 0:
                print(f"{number + 1} episodes, {time.monotonic() - began:.0f} s: {played.counts}", flush=True)
        for process in processes:
            process.end()
    finally:
        for process in processes:
            process.process.kill()
        broker.stop()
        proxy.stop()
    seconds = round(time.monotonic() - began, 1)
    return {"counts": asdict(played.counts), "messages": asdict(proxy.counts), "seconds": seconds} | results(played)


def results(played: Field) -> dict[str, Any]:
    """Accuracy and τ with 95 % intervals, and the rates."""
    outcomes, counts = played.outcomes, played.counts
    return {
        **rates_of([o.right for o in outcomes], [o.tau for o in outcomes]),
        "session": rates_of([o.session_right for o in outcomes], [o.session_tau for o in outcomes]),
        "late": {
            "agents": counts.late / max(counts.others, 1),
            "episodes": sum(o.tau > o.session_tau for o in outcomes) / len(outcomes),
        },
        "rates": {"lost": counts.missed / max(counts.rounds, 1), "late": late_rate(outcomes)},
    }


def rates_of(right: Sequence[bool], taus: Sequence[int]) -> dict[str, Any]:
    """Accuracy and τ with 95 % intervals."""
    stops = np.array(taus, float)
    return {
        "accuracy": sum(right) / len(right),
        "accuracy_interval": list(wilson_interval(sum(right), len(right))),
        "tau": float(stops.mean()),
        "tau_interval": list(mean_interval(stops)),
        "tau_error": float(stops.std(ddof=1) / math.sqrt(len(stops))),
    }


WHAT = "Six agents and a coordinator in seven processes over mosquitto, under kills and faults"
WHICH = ("synthetic measurements", "real measurements")


def write(path: Path | None, asked: dict[str, Any], value: dict[str, Any], at: dict[str, Any]) -> None:
    """Print, and write the results file. `at`: commits and dates of playing and of predicting."""
    print(json.dumps(value, indent=2), flush=True)
    if path is not None:
        content = {"what": WHAT, "asked": asked}
        text = json.dumps({**content, "value": value, "provenance": at}, indent=2)
        write_atomically(path, text.encode() + b"\n")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.field", description=__doc__)
    parser.add_argument("--team", default="nitrate-synthetic", help="a team file or a pretrained team for hotspots")
    parser.add_argument("--synthetic", type=int, default=0, help="seed of the synthetic measurements")
    parser.add_argument("--data", nargs="+", help="real measurements instead")
    parser.add_argument("--simulated", type=int, default=4000, help="episodes of the prediction")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", action="store_true", help="predict again, play nothing")
    for name in ("episodes", "seed", "every", "listen", "lost", "killed"):
        default = getattr(Plan(), name)
        parser.add_argument(f"--{name}", type=type(default), default=default)
    args = parser.parse_args(words)
    path, worlds = find(args.team), {"data": args.data} if args.data else {"synthetic": args.synthetic}
    team = load(path, **worlds)
    check_alone(team)
    plan = Plan(**{name: getattr(args, name) for name in ("episodes", "seed", "every", "listen", "lost", "killed")})
    asked = {"team": args.team, "worlds": WHICH[bool(args.data)], "file": about(path).digest, **asdict(plan)}
    if args.again:
        written = json.loads(args.out.read_text())
        found, at = written["value"], written["provenance"]
        if {**written["asked"], "team": args.team} != json.loads(json.dumps(asked)):
            raise UserError(f"{args.out} holds other episodes: give the options that it was written with")
    else:
        with tempfile.TemporaryDirectory() as folder:
            found, at = measure(team, path, plan, Path(folder)), circumstances()
        write(args.out, asked, found, at)
    compared = against_predictions(team, found, args.simulated, plan)
    write(args.out, asked, compared, {**at, "predicted": circumstances()})
    print("\n".join(rows(asked, compared)))
    return int(Counts(**found["counts"]).faults > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
