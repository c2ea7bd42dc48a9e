"""Personas of simulated users, one value of each stratum, so that success can be compared between kinds of users."""
