from tests.dashboard.conftest import browser

__all__ = ["browser"]
