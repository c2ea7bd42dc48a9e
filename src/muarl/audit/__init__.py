"""The audit: rule-based evaluation of every episode in five layers, with findings that point at turns."""
