"""Defaults of a fit that the command line shows: its help loads no numerical library."""

from typing import Literal

N_COMPONENTS = 50
N_FITS = 4
TRAIN_ON: Literal["full", "observed"] = "full"
MAX_ITER = 300
TOL = 1e-4
