"""The framework that tests build networks on: TensorFlow, or what ``COACH_TEST_FRAMEWORK`` names."""

from __future__ import annotations

import os

from rl_coach.base_parameters import Frameworks

FRAMEWORK = Frameworks[os.environ.get("COACH_TEST_FRAMEWORK", "tensorflow")]
