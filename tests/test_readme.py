"""The examples that the README promises to run, do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = re.findall(
    r"<!-- tested -->\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
)


def test_there_are_examples():
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code):
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=ROOT)


def test_every_file_that_the_readme_names_exists():
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"\]\(([^)#:]+)\)", text))
    named |= set(re.findall(r"`((?:gym_webforage|benchmarks)/[\w/]+\.py)`", text))
    assert named
    missing = {name for name in named if not (ROOT / name).exists()}
    assert not missing
