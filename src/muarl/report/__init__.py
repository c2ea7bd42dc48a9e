"""What a run has shown: sections that its report and the viewer share, tables of plans and audits, the last screen."""
