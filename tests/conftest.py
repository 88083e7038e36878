"""Shared test set-up."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Bounds are arithmetic: no example takes long, and a slow machine must not fail a test.
settings.register_profile("planner", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("planner")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write the golden tables anew.")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
