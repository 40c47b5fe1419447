"""Shares of the paper's work as workers of the sweeps' engine."""

import pytest

from icmape import UserError
from icmape.sweeps import places
from paper import command, leading
from paper.command import reproduce_command
from paper.leading import shares
from tools.check_links import ROOT


def test_workers_get_the_command_without_what_is_the_leaders():
    given = ["a3p5", "--on", "slurm", "--train", "--parameters", "partition=gpu", "cpus=2", "--shares=3", "--out", "o"]
    kept = ("-m", "paper", "a3p5", "--train", "--out", "o", "--part")
    assert shares(given, 3) == [(*kept, "1/3"), (*kept, "2/3"), (*kept, "3/3")]
    assert shares(["--parameters", "a=1", "--on=ray", "--shares", "2"], 1) == [("-m", "paper", "--part", "1/1")]


def test_the_leader_starts_a_worker_for_each_share_and_waits(tmp_path, monkeypatch, capsys):
    """They run here: each lists its share, so nothing is computed."""
    started = []

    def start(place, commands, folder, parameters):
        started.append((place, parameters))
        return places.Local([(*command, "--list") for command in commands], folder)

    monkeypatch.setattr(leading.places, "start", start)
    monkeypatch.setattr(leading, "LOOK_SECONDS", 0.05)
    words = ["a3p5", "--on", "local", "--shares", "2", "--out", str(tmp_path), "--parameters", "cpus=2"]
    assert reproduce_command(words) == 0
    assert started == [("local", {"cpus": 2})]
    assert "2 workers" in capsys.readouterr().out
    logs = [(tmp_path / f"worker-{number}.log").read_text() for number in (0, 1)]
    assert all("a3p5" in log for log in logs), logs
    assert logs[0] != logs[1]


@pytest.mark.parametrize("more", [["--part", "1/2"], ["--pack", "packed"], ["--parameters", "x"], ["--shares", "0"]])
def test_what_does_not_go_together_is_refused(more, tmp_path):
    with pytest.raises(UserError):
        reproduce_command(["a3p5", "--on", "local", "--out", str(tmp_path / "out"), *more])


def test_the_page_on_reproducing_names_every_option():
    page = (ROOT / "docs" / "how-to" / "reproduce.md").read_text()
    options = [flag for action in command._parser()._actions for flag in action.option_strings if flag != "-h"]
    assert [flag for flag in options if flag != "--help" and f"| `{flag}" not in page] == []
