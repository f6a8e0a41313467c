"""maniple train: one verb per algorithm."""

from maniple.core.optional import require

# Asked for before anything here imports it: the message names the extra to install.
require("torch")
