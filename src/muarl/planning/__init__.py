"""What a run needs before it starts: bytes, seconds and dollars from a model's sizes, a configuration and assumptions.

Pure functions of numbers, without torch. ``models`` counts parameters, ``memory`` bytes, ``speed`` operations and time;
``setup`` reads the sections about scale, ``plan`` puts it all together, ``nearest`` looks for a run that fits.
"""
