"""The version of muarl, for modules that must not import the whole front door."""

__version__ = "0.1.0"
