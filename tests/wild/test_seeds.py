"""The listings the project was created from: each has exactly the findings it is marked with."""

from pathlib import Path

import pytest
from programs import expected, supervise
from tiers import in_tiers

LISTINGS = sorted((Path(__file__).parent / "seeds").glob("*.py"))
QUICK = {
    "000_accumulation", "000_partial_load", "000_worker_init", "002_checkpoint_forward", "002_model_device",
    "003_autograd_linear_regression", "003_environment_checks",
}  # fmt: skip
"""For `make test`; the others are for `make programs`."""


@pytest.mark.parametrize("listing", in_tiers(LISTINGS, QUICK))
def test_listing_has_its_findings_and_no_other(listing: Path) -> None:
    run = supervise(listing)
    assert run.how == "finished", str(run)
    assert run.found == expected(listing), str(run)
    assert run.errors == [], str(run)


def test_all_listings_are_there() -> None:
    assert len(LISTINGS) >= 60
