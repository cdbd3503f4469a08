from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def result_file() -> Path:
    return FIXTURES / "larch-8b_multi_turn_base_result.json"


@pytest.fixture
def sessions() -> Path:
    return FIXTURES / "sessions"


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Real logs, kept in a folder ``shared`` beside the checkout and not in the project."""
    folder = Path(__file__).parents[2].parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("needs real logs in ../shared/traces, beside the checkout")
    return folder
