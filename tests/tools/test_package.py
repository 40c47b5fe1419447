"""What the distributions declare is what the repository holds."""

import json
import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

import icmape
from tools.agent_source import write_source
from tools.check_links import ROOT

PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text())
AGENT = tomllib.loads((ROOT / "agent" / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PACKAGE["project"]["optional-dependencies"]


def data_files(package: str) -> list[str]:
    """Files of a package that are not Python, as they are in the source tree."""
    every = (path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(ROOT).as_posix() for path in every if path.suffix not in (".py", ".pyc"))


def declared(path: str, package_data: dict[str, list[str]]) -> bool:
    """Whether a pattern of some package holds a file; a * does not cross folders."""
    for package, patterns in package_data.items():
        folder = PurePosixPath(package.replace(".", "/"))
        if PurePosixPath(path).is_relative_to(folder):
            name = PurePosixPath(path).relative_to(folder)
            if any(matches(name, PurePosixPath(pattern)) for pattern in patterns):
                return True
    return False


def matches(name: PurePosixPath, pattern: PurePosixPath) -> bool:
    """Part by part."""
    same_depth = len(name.parts) == len(pattern.parts)
    return same_depth and all(map(fnmatchcase, name.parts, pattern.parts))


@pytest.mark.parametrize(
    ("package", "project"), [("icmape", PACKAGE), ("icmape_agent", PACKAGE), ("icmape_agent", AGENT)]
)
def test_every_data_file_is_in_the_wheel(package: str, project: dict[str, Any]) -> None:
    files = data_files(package)
    assert files
    assert [path for path in files if not declared(path, project["tool"]["setuptools"]["package-data"])] == []


def test_a_data_file_that_no_pattern_names_is_missed() -> None:
    assert not declared("icmape/app/assets/deeper/x.js", PACKAGE["tool"]["setuptools"]["package-data"])


def test_the_agents_distribution_holds_every_package_of_the_agents() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "icmape_agent").rglob("__init__.py")}
    names = {".".join(folder.parts) for folder in folders}
    assert set(AGENT["tool"]["setuptools"]["packages"]) == names
    assert AGENT["tool"]["setuptools"]["package-dir"] == {name: f"../{name.replace('.', '/')}" for name in names}


def test_both_distributions_ask_for_the_same_versions() -> None:
    assert set(AGENT["project"]["dependencies"]) <= set(PACKAGE["project"]["dependencies"])
    for name, wanted in AGENT["project"]["optional-dependencies"].items():
        assert wanted == EXTRAS[name]


def test_tests_have_every_extra() -> None:
    (installed,) = (word for word in EXTRAS["dev"] if word.startswith("icmape["))
    assert set(re.findall(r"\w+", installed)) - {"icmape"} == set(EXTRAS) - {"dev"}


def test_ci_installs_every_extra_and_makes_all() -> None:
    """`make test` is lint and tests."""
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    made = {word for line in lines if line.startswith("make ") for word in line.split()[1:] if word.isalpha()}
    assert made == {"setup", "dist", "lint", "site", "sources", "tests"}
    makefile = (ROOT / "Makefile").read_text()
    assert "\ntest: lint tests\n" in makefile
    (setup,) = (rule for rule in makefile.split("\n\n") if rule.startswith("$(STAMP):"))
    assert "'.[dev]'" in setup


def test_the_page_on_installation_names_every_extra() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text()
    rows = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", rows)) >= set(EXTRAS)


def test_the_page_on_installation_says_what_was_measured() -> None:
    measured = json.loads((ROOT / "results" / "install.json").read_text())
    sizes, seconds = measured["megabytes"], measured["seconds"]
    expected = [f"{sizes['wheel']} MB", f"{sizes['sdist']} MB", f"{sizes['installed with all dependencies']:.0f} MB"]
    expected += [f"{seconds[name]:.0f} s" for name in ("build", "pip install")]
    expected += [f"{seconds[name]} s" for name in ("icmape --help", "icmape list")]
    section = (ROOT / "docs" / "how-to" / "install.md").read_text().partition("## Size and time")[2]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ") and line.strip("| ")]
    assert [row[2].strip() for row in rows if row[1].strip()] == expected


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == icmape.__version__
    assert citation["license"] == PACKAGE["project"]["license"]
    paper = citation["preferred-citation"]
    readme = (ROOT / "README.md").read_text()
    assert f"{{{paper['title']}}}" in readme
    assert " and ".join(f"{author['given-names']} {author['family-names']}" for author in paper["authors"]) in readme


def test_the_agents_source_archive_holds_its_package(tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    settings = tomllib.loads((tmp_path / "source" / "pyproject.toml").read_text())
    for name, folder in settings["tool"]["setuptools"]["package-dir"].items():
        copied, original = tmp_path / "source" / folder, ROOT / name.replace(".", "/")
        assert {path.name for path in original.glob("*.py")} == {path.name for path in copied.glob("*.py")}
    assert (tmp_path / "source" / settings["project"]["readme"]).is_file()
    assert (tmp_path / "source" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
