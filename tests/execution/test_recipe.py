"""What the presets of ``leapmodel train`` make of a base."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leapmodel.errors import UsageError
from leapmodel.execution.training.sft import PAPER, Recipe, recipe_for
from leapmodel.execution.training.tiny import SHAPES


def base(folder: Path, width: int, mib: int) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"hidden_size": width}))
    with open(folder / "model.safetensors", "wb") as file:
        file.truncate(mib * 2**20)
    return folder


def test_the_paper_asks_nothing_of_the_base(tmp_path: Path):
    assert Recipe(**recipe_for(tmp_path / "nothing there", "paper")) == PAPER
    assert (PAPER.rank, PAPER.alpha, PAPER.learning_rate, PAPER.epochs) == (64, 128, 3e-5, 3)


@pytest.mark.parametrize(
    ("width", "mib", "rate", "epochs"),
    [
        (SHAPES["1.7M"].hidden, 3, 1e-3, 10),
        (SHAPES["5M"].hidden, 10, 1e-3, 10),
        (SHAPES["15M"].hidden, 30, 1e-3, 5),
        (576, 257, 6.7e-4, 1),  # SmolLM2-135M
    ],
)
def test_a_wider_model_learns_more_slowly(
    tmp_path: Path, width: int, mib: int, rate: float, epochs: int
):
    recipe = Recipe(**recipe_for(base(tmp_path / "base", width, mib), "cpu"))
    assert recipe.learning_rate == pytest.approx(rate, rel=0.01)
    assert (recipe.epochs, recipe.batch_size, recipe.rank) == (epochs, 8, 64)


@pytest.mark.parametrize(
    "config", ["", "[]", "{}", '{"hidden_size": "wide"}', '{"hidden_size": 0}']
)
def test_a_base_that_does_not_say_how_wide_it_is(tmp_path: Path, config: str):
    folder = base(tmp_path / "base", 128, 1)
    (folder / "config.json").write_text(config)
    with pytest.raises(UsageError, match=r"expected model\.safetensors and a config"):
        recipe_for(folder, "cpu")
