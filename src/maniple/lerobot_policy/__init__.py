"""A policy of ours as one of LeRobot's: import this in LeRobot's environment, and it is known.

Nothing else in maniple imports it. LeRobot finds classes by the names of these modules.
"""

from maniple.lerobot_policy.configuration_maniple import ManipleConfig as ManipleConfig
from maniple.lerobot_policy.modeling_maniple import ManiplePolicy as ManiplePolicy
