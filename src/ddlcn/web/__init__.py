"""Pages that need no network (templates, SVG), and the server behind `ddlcn serve`."""
