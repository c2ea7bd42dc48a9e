"""AReaL-tau2-data: 1,982 made tasks for TAU2's airline, retail and telecom, to train on, each with a snapshot of its
database (``muarl data add areal-tau2``)."""
