"""The subcommands of muarl that look at, judge, serve and export what runs leave behind."""
