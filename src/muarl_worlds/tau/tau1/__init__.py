"""The two worlds of TAU1 (tau-bench): a shop and an airline, with its own tools, error texts and state hash."""

from muarl_worlds.tau.tau1.airline import Tau1Airline as Tau1Airline
from muarl_worlds.tau.tau1.retail import Tau1Retail as Tau1Retail
