"""Users who are less easy: the same requests, told by somebody who withholds, hurries, wanders, errs, or is foreign."""
