"""Train from a configuration file with the core dependencies alone: python -m icmape.learning CONFIG.json [OUT]."""

import logging
import sys
import time
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path

from icmape.baselines.by_name import find_policies
from icmape.errors import UserError, error_line, log_printable
from icmape.imports import named_code
from icmape.learning.check_config import check
from icmape.learning.run import Progress, parted, resume_run, train_run
from icmape.learning.run_folder import held_files, read_config
from icmape.locks import only_writer
from icmape.networks import name_encoder
from icmape.play.processes import is_first, join
from icmape.problem.entry import import_from_here
from icmape.problem.spec import build_named

USAGE = """usage: python -m icmape.learning CONFIG.json [OUT] [--resume]
                                 [--problem module:Class] [--teacher.policy module:Class]
                                 [--network.encoder module:Class]
                                 [--distributed HOST:PORT,PROCESSES,NUMBER | --distributed auto]

Trains what CONFIG.json says (as `icmape train` writes it to its run's folder) and writes metrics and checkpoints to
OUT (default: the configuration's folder). With --resume it goes on from OUT's checkpoint. Needs jax, equinox, optax
and numpy only; teams are exported as safetensors where that package is installed, or later by `icmape resume OUT`.
With --distributed it is one process of a run: PROCESSES in all, this one is the NUMBERth from 0, and the first one,
which writes, listens at HOST:PORT; auto takes this from Slurm. All of them read the same OUT.
Code that is not part of icmape is imported only if --problem, --teacher.policy and --network.encoder name what
CONFIG.json names."""


def main(arguments: list[str]) -> int:
    """Run the command and return the exit code."""
    log_printable(logging.INFO)
    plain, flags, words, where, encoder = [], set(), iter(arguments), None, ""
    for word in words:
        if word.partition("=")[0] == "--network.encoder":
            encoder = word.partition("=")[2] or next(words, "")
        elif word.partition("=")[0] == "--distributed":
            where = word.partition("=")[2] or next(words, "")
        elif word.partition("=")[0] in ("--problem", "--teacher.policy"):
            _ = "=" in word or next(words, None)
        elif word.startswith("-"):
            flags.add(word)
        else:
            plain.append(word)
    if not 1 <= len(plain) <= 2 or flags - {"--resume"}:
        print(USAGE, file=sys.stderr)
        return 0 if flags & {"-h", "--help"} else 2
    try:
        if named := named_code(arguments):
            import_from_here()
        if encoder:
            name_encoder(encoder)
        if where is not None:
            join(where)
        return _train(Path(plain[0]), Path(plain[-1]), "--resume" in flags, named)
    except (UserError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _train(config_path: Path, out: Path, resume: bool, named: Collection[str]) -> int:
    kind, arguments, config = read_config(config_path)
    if out == config_path:
        out = config_path.parent
    problem = build_named(kind, arguments, named)
    check(config, problem)
    policies = find_policies(problem, config, named=named)
    began = time.monotonic()
    if not is_first():
        logging.getLogger("icmape").setLevel(logging.ERROR)

    def show(report: Progress) -> None:
        for row in report.rows if is_first() else ():
            cells = "  ".join(
                f"{name} {row[name]:.4g}" for name in ("accuracy", "tau", "step_cost") if row[name] is not None
            )
            print(
                f"{report.iteration}/{report.iterations}  {time.monotonic() - began:.0f}s  seed {row['seed']}  {cells}"
            )

    with only_writer(out) if is_first() else nullcontext():
        if resume:
            run = resume_run(problem, config, out, callback=show, policies=policies)
        else:
            only_config = [path.resolve() for path in held_files(out)] == [config_path.resolve()]
            run = train_run(problem, config, out, overwrite=only_config, callback=show, policies=policies)
        run = parted(run)
        if not is_first():
            return run.exit_code
        try:
            import safetensors  # noqa: F401
        except ImportError:
            print(f"safetensors is not installed: `icmape resume {out}` will export the teams")
            return run.exit_code
        from icmape.learning.run_teams import save_teams

        for path in save_teams(run, out).values():
            print(path)
        return run.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
