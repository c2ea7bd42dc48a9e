"""The fixture of ``AS_NATIVELY``."""

from support.trainers import told as told
