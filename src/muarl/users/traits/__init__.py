"""Users who are less easy: the same wishes, told by somebody who withholds, hurries, wanders, errs, or is foreign."""
