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
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import icmape_agent
from benchmarks.field_proxy import Faults, Proxy
from benchmarks.mosquitto import Mosquitto
from icmape.errors import UserError
from icmape.evaluation.intervals import mean_interval, wilson_interval
from icmape.evaluation.robustness import sweep_point
from icmape.io import circumstances, write_atomically
from icmape.play.episodes import play
from icmape.play.team import Team
from icmape.play.team_files import about, load
from icmape.problem import HypothesisSpace, Problem
from icmape.problem.adapter import Adapter
from icmape_agent.files import find
from icmape_agent.session import Session, journal
from icmape_agent.session.crew import plain

LIMIT = 90.0  # seconds after which an episode counts as one without an end
WORLDS = 7_000  # folded into the key of the worlds
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


class Process:
    """An agent's process, or the coordinator's, which is started again when it was killed."""

    def __init__(self, module: str, *words: Any):
        self.words = [sys.executable, "-m", module, *map(str, words)]
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.episode: dict[str, Any] | None = None
        self.guard, self.ready = threading.Lock(), threading.Event()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def wait(self) -> None:
        """Until it can play."""
        self.ready.wait(60)

    def play(self, episode: dict[str, Any]) -> None:
        with self.guard:
            self.episode = episode
            self._send()

    def kill(self, name: str) -> bool:
        """Kill it in an episode that has not ended for it, and start it again; whether it was killed."""
        with self.guard:
            if self.episode is None or self.episode["name"] != name:
                return False
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.start()
            self._send()
            return True

    def finish(self) -> None:
        """Tell it that the episode is over."""
        with self.guard:
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def ended(self, name: str, until: float) -> dict[str, Any]:
        """What it told at the end of an episode; raises `queue.Empty` if it does not in time.

        A process that is killed right after its end is heard twice.
        """
        while True:
            told = self.told.get(timeout=max(until - time.monotonic(), 0.01))
            if told["episode"] == name:
                return told

    def end(self) -> None:
        self.process.stdin.close()
        if self.process.wait(20) != 0:
            raise RuntimeError(f"an agent ended with {self.process.returncode}")

    def _send(self) -> None:
        self.process.stdin.write(json.dumps(self.episode) + "\n")
        self.process.stdin.flush()

    def _listen(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            try:
                told = json.loads(line)
            except ValueError:  # a line that a kill cut off
                continue
            self.ready.set()
            if "episode" in told:
                with self.guard:
                    self.episode = None
                self.told.put(told)


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


def late_rate(outcomes: Sequence[Outcome]) -> float:
    """Rate of late bits, independent for each agent, at which as many episodes have a late agent as there were."""
    others, late = np.array([o.others for o in outcomes]), sum(o.tau > o.session_tau for o in outcomes)
    if late == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(50):
        rate = (low + high) / 2
        low, high = (rate, high) if (1 - (1 - rate) ** others).sum() < late else (low, rate)
    return high


class SameWorlds(Adapter):
    """The worlds of `world_of`, all equally likely, with new readings."""

    problem: Problem
    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: HypothesisSpace
    seed: int = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def __init__(self, problem: Problem, seed: int, count: int):
        self.problem, self.seed, self.count = problem, seed, count
        self.agents, self.actions, self.horizon = problem.agents, problem.actions, problem.horizon
        self.hypotheses = problem.hypotheses

    def sample(self, *, key: Any) -> Any:
        """One of them."""
        number = jax.random.randint(key, (), 0, self.count)
        once = jax.random.fold_in(jax.random.key(self.seed + WORLDS), number)
        return self.problem.sample(key=jax.random.split(once, 3)[0])


def predicted(team: Team, rates: dict[str, float], episodes: int, plan: Plan) -> dict[str, Any]:
    """What simulated episodes with these rates give in the worlds of a plan."""
    same = replace(team, problem=SameWorlds(team.problem, plan.seed, plan.episodes)).under(**rates)
    point = sweep_point(rates, play(same, episodes, plan.seed, exact=0), team.problem.horizon)
    return plain(point._asdict())


def against_predictions(team: Team, found: dict[str, Any], episodes: int, plan: Plan) -> dict[str, Any]:
    """What was found, with the predictions and the tests: with the readings of late agents, and of the sessions."""
    count = found["counts"]["episodes"] - found["counts"]["without_end"]
    rates, session = found["rates"], found["session"]
    expected = predicted(team, rates, episodes, plan)
    in_time = predicted(team, {**rates, "late": 0.0}, episodes, plan)
    own = {**session, "predicted": in_time, "consistency": consistency(session, count, in_time)}
    return {**found, "predicted": expected, "consistency": consistency(found, count, expected), "session": own}


def consistency(found: dict[str, Any], count: int, expected: dict[str, Any]) -> dict[str, Any]:
    """Two-sided tests of accuracy and τ. Each is below 0.01 in one of 100 runs if the prediction is right."""
    from scipy import stats

    simulated = expected["episodes"]
    pooled = (found["accuracy"] * count + expected["accuracy"] * simulated) / (count + simulated)
    error = math.sqrt(pooled * (1 - pooled) * (1 / count + 1 / simulated))
    by = {
        "accuracy": (found["accuracy"] - expected["accuracy"]) / max(error, 1e-12),
        "tau": (found["tau"] - expected["tau"]) / math.hypot(found["tau_error"], expected["tau_error"]),
    }
    return {name: {"z": z, "p": float(2 * stats.norm.sf(abs(z)))} for name, z in by.items()}


def rows(asked: dict[str, Any], value: dict[str, Any]) -> list[str]:
    """The table of docs/reference/mqtt.md."""
    counts, rates = value["counts"], value["rates"]
    messages = ", ".join(f"{value['messages'][name]:,}" for name in ("doubled", "delayed", "dropped", "cut"))
    shares = (rates["lost"], value["late"]["agents"], value["late"]["episodes"], rates["late"])
    lost, late, episodes, predicting = (f"{100 * share:.1f} %" for share in shares)
    acknowledged = f"{counts['acknowledged']:,}; {counts['acknowledged_lost']}"
    return [
        f"| {counts['episodes']} episodes, rounds of {asked['every']:g} s | |",
        "|---|---|",
        f"| kills of agents; of the coordinator | {counts['kills']}; {counts['coordinator_kills']} |",
        "| messages; of these, doubled, delayed, dropped, with the connection cut | "
        f"{value['messages']['messages']:,}; {messages} |",
        f"| acknowledged readings and misses; of these, lost | {acknowledged} |",
        f"| entries that were not acknowledged in the end; refused | {counts['unacknowledged']}; {counts['refused']} |",
        f"| entries in the coordinator's journal that no agent made | {counts['unknown']} |",
        f"| episodes without an end | {counts['without_end']} |",
        f"| rounds of agents without a reading | {lost} |",
        f"| agents that heard the stop late; episodes with such an agent | {late}; {episodes} |",
        f"| rate of late bits that gives as many such episodes if each agent is late on its own | {predicting} |",
        *compared_rows("with the readings of late agents", value),
        *compared_rows("of the sessions, which do not count them", value["session"]),
    ]


def compared_rows(which: str, value: dict[str, Any]) -> list[str]:
    """τ and accuracy beside their predictions."""
    rows = []
    for name, label, digits in (("tau", "τ", 2), ("accuracy", "accuracy", 3)):
        numbers = (value[name], *value[f"{name}_interval"], value["predicted"][name])
        found, low, high, expected = (f"{number:.{digits}f}" for number in numbers)
        p_value = f"{value['consistency'][name]['p']:.2g}"
        what = f"{label} {which}; predicted; p-value of the difference"
        rows.append(f"| {what} | {found} [{low}, {high}]; {expected}; {p_value} |")
    return rows


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
