"""A diagnosis as one HTML file that needs nothing else: `kernelprop.report.page`."""
