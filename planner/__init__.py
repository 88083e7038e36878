"""A capacity planner for serving large language models, built on the roofline model."""

__version__ = "0.1.0"
