"""A doctors' practice: appointments and prescriptions."""
