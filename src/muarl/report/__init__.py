"""What a run has shown, in sections that its report and the viewer share; tables of plans and audits; the last screen."""
