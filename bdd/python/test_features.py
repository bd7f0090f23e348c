"""Every feature of bdd/features."""

import os
from pathlib import Path

from pytest_bdd import scenarios

FEATURES = Path(__file__).parent.parent / "features"
CHOSEN = os.environ.get("IGGY_BDD_FEATURE")

scenarios(str(FEATURES / f"{CHOSEN}.feature" if CHOSEN else FEATURES))
